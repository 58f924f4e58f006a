"""The process a `Driver` starts: `python -m tests.faults DESCRIPTOR`."""

import sys
from multiprocessing.connection import Connection

from tests.faults.driver import serve

if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
