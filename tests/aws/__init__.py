"""Amazon services, below the wire."""
