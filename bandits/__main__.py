"""``python -m bandits`` is the command ``bandits``."""

from bandits.cli.commands import main

if __name__ == "__main__":
    main()
