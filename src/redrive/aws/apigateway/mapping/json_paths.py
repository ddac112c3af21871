"""JSON paths of `$input.path` and `$input.json`: members, indexes, wildcards, and descent to any depth."""

import re
from functools import lru_cache
from typing import Any, Final

import orjson

from redrive.aws.apigateway.mapping.velocity.values import TemplateFailed
from redrive.model.budget import Budget

_STEP: Final = re.compile(
    r"(?P<deep>\.\.)?(?:\.?(?P<name>[^.\[\]'\"*()?@\s]+)|\[\s*'(?P<quoted>[^']*)'\s*\]|\[\s*\"(?P<double>[^\"]*)\"\s*\]"
    r"|\[\s*(?P<index>-?[0-9]{1,9})\s*\]|(?P<all>\.?\*|\[\s*\*\s*\]))"
)
_CHARS_MAX: Final = 1024

Step = tuple[bool, str | int | None]
"""Whether it looks at any depth; and the name, the index, or None: all."""


@lru_cache(maxsize=1024)
def steps_of(path: str) -> tuple[Step, ...]:
    """The steps of a path.

    Raises:
        TemplateFailed: The path is malformed, or uses a filter or a slice.
    """
    text = path.strip()
    if not text.startswith("$") or len(text) > _CHARS_MAX:
        raise TemplateFailed(f"Invalid JSON path: {path[:100]}")
    at, steps = 1, []
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise TemplateFailed(f"Invalid JSON path, or one that is not offered: {path[:100]}")
        key: str | int | None = None
        for name in ("name", "quoted", "double"):
            key = match[name] if match[name] is not None else key
        if match["index"] is not None:
            key = int(match["index"])
        steps.append((match["deep"] is not None, key))
        at = match.end()
    return tuple(steps)


def looked_up(budget: Budget, document: Any, path: str) -> Any:
    """The value at a path, or a list of all where it may lead to several; None: nothing stands there."""
    steps = steps_of(path)
    several = any(deep or key is None for deep, key in steps)
    matches = [document]
    for deep, key in steps:
        budget.spend(len(matches) + 1)
        if deep:
            matches = _all_below(budget, matches)
        matches = [value for each in matches for value in _values(budget, each, key)]
    if several:
        return matches
    return matches[0] if matches else None


def json_text(budget: Budget, document: Any, path: str) -> str:
    """The JSON of what stands at a path. Wildcards find a value several times over, and all of it is paid for."""
    matches = looked_up(budget, document, path)
    if any(deep or key is None for deep, key in steps_of(path)):
        _weigh(budget, matches)
    return orjson.dumps(matches).decode()


def _weigh(budget: Budget, value: Any) -> None:
    budget.spend()
    if isinstance(value, str):
        budget.spend_chars(len(value))
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _weigh(budget, child)


def _values(budget: Budget, value: Any, key: str | int | None) -> list[Any]:
    if key is None:
        items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        budget.spend(len(items))
        return items
    if isinstance(key, int):
        if isinstance(value, list) and -len(value) <= key < len(value):
            return [value[key]]
        return []
    return [value[key]] if isinstance(value, dict) and key in value else []


def _all_below(budget: Budget, matches: list[Any]) -> list[Any]:
    below: list[Any] = []
    level = list(matches)
    while level:
        budget.spend(len(level))
        below += level
        level = [
            child
            for value in level
            for child in (
                value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            )
        ]
    return below
