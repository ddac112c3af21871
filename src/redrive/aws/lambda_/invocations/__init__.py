"""Invocations: synchronous, streamed and asynchronous, and what follows from their results."""
