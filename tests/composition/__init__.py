"""The server as it is put together."""
