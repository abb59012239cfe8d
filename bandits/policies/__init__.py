"""Policies, one file each; a variant states only its difference.

*Phases.* ``fedpe`` has Algorithms 1 and 2 of the paper; read it first. ``enhanced`` and ``collaborative`` are
its variants and ``phased`` has their options and the loop over phases. ``design`` computes the design of a
phase, ``collinearity`` finds the clients that share information, and ``aggregation`` has the kernels.
``delb`` is the elimination algorithm for clients with equal features.

*Steps.* ``stepwise`` has the loop of policies that decide at every step. ``local_ucb``, ``linucb``,
``lints``, ``dislinucb`` and ``feducb`` are such policies, the last four on the models of ``linear`` and
``ridge``.

``longest`` is a control that does not learn, and ``parameters`` has the option of that name.
"""
