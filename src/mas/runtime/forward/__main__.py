"""Started as `python -ISE …/mas/runtime/forward/__main__.py PLAN`: finds the package, then runs it."""

import sys

if __name__ == "__main__":
    # -I keeps out everything of the caller; the package itself is four directories up.
    sys.path.insert(0, __file__.rsplit("/", 4)[0])
    from mas.runtime.forward.process import main

    sys.exit(main(sys.argv[1]))
