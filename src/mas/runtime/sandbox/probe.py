"""Probe: whether this machine can isolate agents, found out by doing it."""

from __future__ import annotations


def probe(how: str) -> str:
    """Why agents cannot be isolated by `how`; empty where they can."""
    return "not there yet"


def landlock_abi() -> int:
    """The version of Landlock; 0 where there is none."""
    return 0


def not_enforced(tier: str, abi: int, how: str) -> tuple[str, ...]:
    """What a tier leaves open, in words."""
    return ()
