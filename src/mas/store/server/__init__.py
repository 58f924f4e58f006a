"""What the workspace's server has: its address, its lock, its secrets."""
