"""What the kernel enforces around an agent, and how the agent's process enters its sandbox."""
