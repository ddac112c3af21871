"""Event source mappings: queues whose messages go to functions."""
