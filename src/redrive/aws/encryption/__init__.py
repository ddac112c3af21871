"""Encryption at rest: messages of queues and topics with a key."""
