"""How one agent CLI behaves: declarative files and pure functions."""
