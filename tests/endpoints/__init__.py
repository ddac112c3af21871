"""Endpoints by themselves: addresses, credentials, and what mail looks like."""
