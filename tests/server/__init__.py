"""The HTTP front, over real sockets."""
