"""Starts threads; a machine with a full process table cannot."""

from threading import Thread


def started(thread: Thread) -> bool:
    """Start a thread; False if there are no more to be had just now."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True
