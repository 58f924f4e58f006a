"""Run by bubblewrap as `python -ISE inside.py DESCRIPTOR…`, first process of the new namespace: starts the agent."""

import sys

if __name__ == "__main__":
    # -I keeps out everything of the caller; the package itself is four directories up.
    sys.path.insert(0, __file__.rsplit("/", 4)[0])
    from mas.runtime.sandbox.enter import go_on_inside

    go_on_inside([int(word) for word in sys.argv[1:]])
