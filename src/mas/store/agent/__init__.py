"""What each agent has: its launch plan, logs, hooks and answers."""
