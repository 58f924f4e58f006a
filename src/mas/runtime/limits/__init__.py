"""Limits on what an agent may use of the machine, enforced by the kernel as far as it can."""
