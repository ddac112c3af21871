"""Functions, as Lambda's own clients make and invoke them at a running server."""
