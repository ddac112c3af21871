"""`python -m redrive`: the command line, where the script `redrive` is not on the path."""

import sys

from redrive.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
