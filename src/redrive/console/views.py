"""Saved views: pages with all that was chosen on them, kept by name for everybody who sees their account and region."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from redrive.engine.ports import DocumentKind

VIEWS_MAX: Final = 100  # of an account's region: one document holds them, 200 KiB at most
STARRED_MAX: Final = 7  # that the navigation has room for
NAME_CHARS_MAX: Final = 80
PATH_CHARS_MAX: Final = 2000


class SavedView(NamedTuple):
    """A saved view of a page."""

    name: str  # Name of the view
    path: str  # Below the console's own, with its query
    by: str  # Access key of its creator; empty without authentication
    at: int  # When (ms)
    starred: bool = False  # Whether the navigation leads to it


def _write(views: Sequence[SavedView]) -> Mapping[str, Any]:
    return {"views": [list(view) for view in views]}


def _read(document: Mapping[str, Any]) -> tuple[SavedView, ...]:
    return tuple(SavedView(*view) for view in document["views"])


#: By account and region; in order of their names.
SAVED_VIEWS: Final[DocumentKind[Sequence[SavedView]]] = DocumentKind("console_views", _write, _read)


def starred(views: Sequence[SavedView]) -> Sequence[SavedView]:
    """Those that the navigation leads to."""
    return [view for view in views if view.starred][:STARRED_MAX]


def with_view(views: Sequence[SavedView], added: SavedView) -> Sequence[SavedView]:
    """Views with one more, which takes the place of another of its name."""
    return tuple(sorted([*without_view(views, added.name), added]))


def without_view(views: Sequence[SavedView], name: str) -> Sequence[SavedView]:
    """Views without the one of that name."""
    return tuple(view for view in views if view.name != name)
