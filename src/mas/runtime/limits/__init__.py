"""Limits: how much of the machine an agent may take, held by the kernel as far as it can."""
