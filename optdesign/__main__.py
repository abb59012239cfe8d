"""``python -m optdesign`` is the command ``optdesign``."""

from optdesign.cli import main

main()
