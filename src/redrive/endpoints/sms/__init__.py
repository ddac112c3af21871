"""Text messages, handed to a message centre over SMPP 3.4."""
