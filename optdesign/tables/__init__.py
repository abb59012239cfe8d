"""Tables: columns of equal length, and the files that hold them.

``columns`` turns data frames, mappings and arrays into columns of plain types; ``files`` reads and writes
CSV, Parquet and NPZ files; ``marks`` reads the signs in numbers. Read ``columns`` first.
"""
