"""Evaluation of designs: standard errors, power, aliasing, prediction variance.

``evaluate.py`` has :func:`optdesign.evaluate`, ``evaluation.py`` its result; ``experiment.py`` reads designs
of every kind; ``estimation.py`` and ``power.py`` have the arithmetic, ``efficiencies.py`` the bounds against
the best design on the candidates, ``linear_criteria.py`` those of A and I, and ``report.py`` the tables.
"""
