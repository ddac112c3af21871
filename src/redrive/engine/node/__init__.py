"""Parts that each node has of its own: its listeners, its counters, its memory of subscriptions, its seals."""
