"""The command line, ``optdesign``.

``commands`` has the commands and ``options`` their options. ``candidate_file``, ``roles`` and ``budgets``
read the input, ``saved`` reads designs, ``outputs`` checks paths, ``report`` and ``notices`` print,
``spelling`` translates arguments to options, and ``pipes`` handles closed pipes. Read ``commands`` first.
"""
