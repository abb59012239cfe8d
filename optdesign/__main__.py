"""``python -m optdesign`` is the command ``optdesign``."""

from optdesign.cli.commands import main

if __name__ == "__main__":
    main()
