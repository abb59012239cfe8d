"""Sums and factors of information matrices, for all parameter blocks at once.

``blocks`` has the kernels of one block, ``passes`` the passes over all candidates, ``whitening`` the maps in
which the information is the identity, and ``reduced`` the reduced form of a problem that solvers work on.
Read ``blocks`` first.
"""
