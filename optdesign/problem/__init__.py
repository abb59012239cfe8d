"""The design problem: candidates, groups, parameter blocks and budgets.

``problem`` is the one problem class, and ``candidates`` makes its rows from factors and a model (``glm`` for
generalized linear models). ``parts`` and ``inputs`` check arguments and labels, ``source`` holds the rows,
``span`` and ``elimination`` decide the rank and choose coordinates, ``coordinates`` computes them without
loss of digits, ``exact_rank`` compares the rank with exact arithmetic, and ``dependence`` names dependent
columns. Read ``problem`` first.
"""
