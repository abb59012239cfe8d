"""Tables: columns of equal length, and the files that hold them.

``columns`` turns data frames, mappings and arrays into columns of plain types; ``files`` reads and writes
CSV, Parquet and NPZ files; ``marks`` tells thousands separators from decimal signs. Read ``columns`` first.
"""
