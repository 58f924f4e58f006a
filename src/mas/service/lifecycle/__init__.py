"""From the start of a session to its end: one verb per file."""
