"""What the kernel enforces around an agent."""
