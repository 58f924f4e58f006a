"""Started by tmux as `python -ISE …/mas/pane/__main__.py SESSION_DIR AGENT`: finds the package, then runs it."""

import sys

if __name__ == "__main__":
    # -I keeps out everything of the caller; the package itself is three directories up.
    sys.path.insert(0, __file__.rsplit("/", 3)[0])
    from mas.pane.launcher import main

    sys.exit(main(sys.argv[1], sys.argv[2]))
