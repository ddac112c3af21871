"""Contracts that botocore publishes for every service: paginators, waiters and examples, at one server."""
