"""Run kernels: compilation, threads, clocks, limits and progress displays.

``jit`` is the decorator of compiled kernels, ``tiers`` runs them as plain Python before they are compiled,
``threads`` divides passes over the candidates among cores, ``clock`` measures time without first use,
``stopping`` ends long work at limits and interrupts, ``progress`` displays it, and ``files`` writes files
whole or not at all. Read ``jit`` first.
"""
