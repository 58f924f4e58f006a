"""Isolation and limits: what the kernel must enforce around each agent."""
