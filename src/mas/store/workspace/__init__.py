"""What a workspace has once: its directories, the registry, open work, events."""
