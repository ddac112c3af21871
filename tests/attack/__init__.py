"""What was tried to get in, to stop the server, or to see what others keep; each held by a test."""
