"""Notifications of buckets: to queues, topics and functions."""
