"""Firehose, by its own clients."""
