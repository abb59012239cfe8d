"""A hunt for false claims: families of ugly input, and the truth in exact and ball arithmetic.

    PYTHONPATH=tests/optdesign python -m hunt exact round --cases 2000

One module for every function under test draws cases, calls the function and compares each of its claims with
the truth (:mod:`hunt.truth`, :mod:`hunt.enumeration`), which shares no code with the package. A case is a
family and a seed. Cases run in processes of their own (:mod:`hunt.pool`).
"""

TARGETS = (
    "solve", "exact", "round", "sparsify", "main_effects", "ellipsoid", "efficiency", "where", "rank",
    "verify",
)  # fmt: skip
"""Modules of the functions under test."""
