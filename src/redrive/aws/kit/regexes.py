"""Regular expressions of callers: matched by RE2, in time that grows with the text and never with what it might be."""

from typing import Any

import re2


def compiled(pattern: str | bytes, *, memory_bytes: int | None = None, **options: Any) -> Any:
    """An expression in RE2's syntax; what is wrong with it is not a line of the server's log.

    Args:
        pattern: The expression.
        memory_bytes: Bound of the states that it has in common for all texts; what finds no room there is followed step
            by step. None: RE2's own.
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
