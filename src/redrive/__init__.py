"""Redrive, a durable event-delivery server: topics, queues, retries, dead letters and redrive on one engine."""

#: The distribution's version too. To read it from the distribution's metadata takes 10 ms, at each start.
__version__ = "0.1.0"
