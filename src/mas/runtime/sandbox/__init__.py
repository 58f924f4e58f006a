"""What the kernel is to enforce around an agent, and how its process gets inside."""
