"""Redrive, a durable event-delivery server: topics, queues, retries, dead letters and redrive on one engine."""

from importlib.metadata import version

__version__ = version("redrive")
