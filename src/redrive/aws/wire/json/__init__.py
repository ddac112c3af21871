"""The JSON protocols 1.0 and 1.1, and values in JSON."""
