"""Exact designs: whole numbers of runs.

``exact`` searches for the best runs and ``rounding`` rounds weights. ``search`` has the loop of the search.
Its moves are in ``exchange`` (any list), ``blocks`` (additive block effects) and ``grid`` (levels of
factors), with the formula of ``rank_two``. ``main_effects`` has additive models without a list of candidates,
with bounds from ``marginals`` and orthogonal designs from ``hadamard``. ``rank_basis`` finds runs of full
rank, and ``runs`` is the result. Read ``exact`` first.
"""
