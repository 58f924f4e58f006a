"""What a session has once: its own files, messages and logs."""
