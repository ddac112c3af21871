"""The tests, a package so that they can share `tests.services` and their strategies by full name."""
