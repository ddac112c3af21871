"""Redrive, a durable event-delivery server: topics, queues, retries, dead letters and redrive on one engine."""

__version__: str


def __getattr__(name: str) -> str:
    """The version, read from the distribution's metadata when it is first asked for: that costs 30 ms."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # noqa: PLC0415 - see above

    globals()[name] = version("redrive")
    return str(globals()[name])
