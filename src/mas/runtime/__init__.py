"""Where programs run; the only room that starts processes."""
