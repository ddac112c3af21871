"""The server as every Amazon client meets it."""
