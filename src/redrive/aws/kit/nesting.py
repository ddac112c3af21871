"""The nesting of documents: the levels of objects and lists within each other."""

from collections.abc import Mapping
from typing import Any


def is_nested_deeper(document: Any, levels_max: int) -> bool:
    """True if a document has more levels of objects and lists than these; counted without recursion.

    Args:
        document: As JSON and YAML are read; a document that is not an object and no list has one level.
        levels_max: The levels that are allowed.
    """
    level, depth = [document], 0
    while level and depth <= levels_max:
        level = [child for value in level for child in _children(value)]
        depth += 1
    return depth > levels_max


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []
