"""Trees of an API: nested documents, read and changed at a place without touching the one that was."""

from collections.abc import Mapping, Sequence
from typing import Any

from redrive.aws.apigateway.control.records import Tree

Path = Sequence[str]
"""The keys that lead to a place."""


def value_at(tree: Tree, path: Path) -> Any:
    """The value at a place; None: nothing stands there."""
    at: Any = tree
    for key in path:
        at = at.get(key) if isinstance(at, Mapping) else None
        if at is None:
            return None
    return at


def with_value(tree: Tree, path: Path, value: Any) -> dict[str, Any]:
    """The tree with a value at a place; what leads there is made where it is missing."""
    key, *rest = path
    if not rest:
        return {**tree, key: value}
    return {**tree, key: with_value(tree.get(key) or {}, rest, value)}


def without(tree: Tree, path: Path) -> dict[str, Any]:
    """The tree without what stands at a place."""
    key, *rest = path
    if key not in tree:
        return dict(tree)
    if not rest:
        return {name: value for name, value in tree.items() if name != key}
    return {**tree, key: without(tree[key], rest)}
