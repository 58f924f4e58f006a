"""Threads: a machine whose process table is full has none to give."""

from threading import Thread


def started(thread: Thread) -> bool:
    """Start a thread; False if there are no more to be had just now."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True
