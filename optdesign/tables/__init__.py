"""Tables: columns of equal length, and the files that hold them.

``values`` turns lists, arrays and columns of data frames into arrays of plain types; ``columns`` holds
several of them as the settings of candidates; ``files`` reads and writes CSV, Parquet and NPZ files;
``marks`` reads the signs in numbers. Read ``columns`` first.
"""
