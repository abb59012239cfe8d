"""Verification that shares no code with the solvers.

``verify`` compares a design with exact arithmetic (``audit``, ``exact_arithmetic``) and with a convex solver
(``reference``, with the programs in ``programs``, run by ``worker`` in a process of its own). Read ``verify``
first.
"""
