"""Attempts to get in, to stop the server, or to see other users' data; each one is refused in a test."""
