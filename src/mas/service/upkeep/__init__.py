"""Upkeep: what is wrong or left over is found, and repaired or removed."""
