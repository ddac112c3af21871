"""Receive: callers claim deliveries, and settle them."""
