"""The facades, and the wire formats under them."""
