"""``python -m optdesign`` is the command ``optdesign``."""

from optdesign.cli import main

if __name__ == "__main__":
    main()
