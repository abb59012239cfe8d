"""The command ``bandits``.

``commands`` has the subcommands; read it first. ``experiment_file`` reads the TOML file of an experiment, and
``options`` checks its options against the signatures of policies and environments.
"""
