"""Regular expressions of callers: matched by RE2, in time that grows with the text and never with what it might be."""

from typing import Any

import re2


def compiled(pattern: str | bytes, *, memory_bytes: int | None = None, **options: Any) -> Any:
    """An expression in RE2's syntax, compiled; a fault in it is raised, and not also written to the server's log.

    Args:
        pattern: The expression.
        memory_bytes: The most memory for the states that it remembers for all texts; without room for more, RE2
            searches more slowly. None: RE2's own bound, 8 MiB.
        options: Further ones of RE2.

    Raises:
        re2.error: RE2 cannot read it, or it takes too much memory.
    """
    settings = re2.Options()
    settings.log_errors = False
    if memory_bytes is not None:
        settings.max_mem = memory_bytes
    for name, value in options.items():
        setattr(settings, name, value)
    return re2.compile(pattern, settings)
