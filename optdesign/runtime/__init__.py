"""Run kernels: compilation, threads, clocks, limits and progress displays.

``jit`` is the decorator of compiled kernels, ``threads`` divides passes over the candidates among cores,
``clock`` measures time without compilation, ``limits`` and ``interrupts`` end long work, ``progress`` shows
it, and ``files`` writes files whole or not at all. Read ``jit`` first.
"""
