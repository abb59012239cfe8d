"""Designs: weights with their certificate, as results and tables.

``certificate`` proves a bound on the gap of any weights, in the coordinates of ``near_singular`` if their
information is nearly singular. ``result`` is the answer of a solver, ``efficiency`` compares designs,
``sparsify`` reduces the support (by ``vertices``, or by ``cheapest`` if there are costs), ``display`` shows a
design as a table. Read ``certificate`` first.
"""
