"""Solvers, one file a method, each with its compiled kernels at the bottom.

A solver is a generator ``method(reduced, u, target, max_iter)``: it improves the shares u in place,
yields the running gaps of the iterations it has done since, and returns when the gap is at most
``target``, when ``max_iter`` iterations are done, or when it can make no more progress. At every yield u
is feasible and keeps the rank. Limits of time, interrupts, history and the final certificate belong to
the one loop in :mod:`optdesign.solve`.
"""
