"""Settings of factors: grids, conditions on them, and model formulas.

``grids`` lists settings, ``conditions`` restricts them, and ``formula`` turns them into model matrices.
:mod:`optdesign.problem.candidates` joins these. Read ``formula`` first.
"""
