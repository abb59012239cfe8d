"""The algorithms, one file each. A variant states only its difference."""
