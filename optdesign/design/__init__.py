"""Designs: weights with their certificate, as results, tables and files.

``certificate`` proves a bound on the gap of any weights, in the coordinates of ``near_singular`` if their
information is nearly singular. ``result`` is the answer of a solver, ``efficiency`` compares designs,
``sparsify`` reduces the support (by ``vertices``, or by ``cheapest`` if there are costs), ``display`` shows a
design as a table, and ``saving`` writes it to a file. Read ``certificate`` first.
"""
