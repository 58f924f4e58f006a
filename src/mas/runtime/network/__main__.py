"""Started as `python -ISE …/mas/runtime/network/__main__.py DIRECTORY DESCRIPTOR… [new]`: finds the package."""

import sys

if __name__ == "__main__":
    # -I keeps out everything of the caller; the package itself is four directories up.
    sys.path.insert(0, __file__.rsplit("/", 4)[0])
    from mas.runtime.network.hold import NEW, wait_for_use

    descriptors = [int(word) for word in sys.argv[2:] if word != NEW]
    if NEW in sys.argv:
        wait_for_use(descriptors)
    from mas.runtime.network.egress import main

    sys.exit(main(sys.argv[1], descriptors))
