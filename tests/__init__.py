"""The tests, a package so that they can share `tests.services` and their strategies by full name."""

import sys

# Where the environment forbids bytecode, each process of a run would compile the server, and rewrite the assertions of
# 850 files, anew: half of collecting.
sys.dont_write_bytecode = False
