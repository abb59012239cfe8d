"""Exact designs: whole numbers of runs.

``exact`` searches for the best runs by ``exchange``, ``rounding`` rounds weights, and ``main_effects``
searches additive models without a list of candidates (by ``level_exchange``, with bounds from ``marginals``).
``rank_basis`` finds runs of full rank, ``search`` organises tries, and ``runs`` is the result. Read ``exact``
first.
"""
