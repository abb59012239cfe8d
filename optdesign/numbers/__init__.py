"""Floating-point arithmetic with known errors.

``roundoff`` has error-free transformations, compensated sums and the bounds that certificates add;
``quantities`` has columns of numbers with bounds on their errors; ``checks`` checks numbers that users pass.
Read ``roundoff`` first.
"""
