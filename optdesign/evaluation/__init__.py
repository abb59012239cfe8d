"""Evaluation of designs: standard errors, power, aliasing, prediction variance.

``evaluation.py`` has :func:`optdesign.evaluate` and its result; ``experiment.py`` reads designs of every
kind; ``coding.py`` has the coding of the coefficients; ``estimation.py`` and ``power.py`` the arithmetic,
and ``report.py`` the tables.
"""
