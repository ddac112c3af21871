"""The public promise of each protocol, asked of the real server by the clients people have."""
