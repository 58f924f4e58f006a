"""MAS runs teams of command-line agents, each team in a session of its own."""

__version__ = "0.1.0"
