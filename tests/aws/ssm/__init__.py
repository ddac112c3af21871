"""Systems Manager without the wire."""
