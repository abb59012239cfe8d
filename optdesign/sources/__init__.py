"""Candidates that stay where they are: on a disk or on a cluster.

An engine runs pure functions on chunks of the data, beside the data (:mod:`.engine`). ``arrays`` has arrays,
memory maps and directories of NPY files, ``parquet`` has Parquet files, ``clusters`` has Dask arrays and
frames, whose passes are in ``partitions``, and ``opening`` chooses the engine for the candidates of a
problem. ``layout`` turns the columns of a table into features and labels, and ``modelled`` fits a formula to
files or frames. Read ``engine`` first.
"""
