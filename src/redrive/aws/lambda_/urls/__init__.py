"""Function URLs: their configuration, requests to them, and answers."""
