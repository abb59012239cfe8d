"""Run kernels: compilation, threads, clocks, limits and progress displays.

``jit`` is the decorator of compiled kernels, ``threads`` divides passes over the candidates among cores,
``clock`` measures time without compilation, ``stopping`` ends long work, ``progress`` shows
it. Read ``jit`` first.
"""
