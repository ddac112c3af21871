"""Saved views: listed, saved under a name, and removed."""

from collections.abc import Sequence
from typing import Any

from redrive.console.views import (
    NAME_CHARS_MAX,
    PATH_CHARS_MAX,
    SAVED_VIEWS,
    VIEWS_MAX,
    SavedView,
    with_view,
    without_view,
)
from redrive.console.visit import Page, Redirect, Visit

_REFUSED = 400


async def listed(visit: Visit) -> Page:
    """The views of an account's region, and a form for the page that one came from."""
    return await _page(visit, "")


async def change(visit: Visit) -> Page | Redirect:
    """Save a view, or remove one."""
    name, path = visit.asked("name").strip(), visit.asked("to")
    documents, key = visit.engine.resources.documents, _key(visit)
    if visit.asked("do") == "remove":
        paths = [view.path for view in await _views(visit) if view.name == name]
        await documents.update_or_create(SAVED_VIEWS, key, (), lambda views: without_view(views, name))
        undo = (f"/{key}/views", {"to": paths, "name": [name]}) if paths else None
        sentence = f"The view {name[:NAME_CHARS_MAX]} is removed"
        return Redirect(visit.link("views"), sentence=sentence, undo=undo)
    refused = _refused(visit, name, path, await _views(visit))
    if refused:
        return await _page(visit, refused, _REFUSED)
    view = SavedView(name, path, visit.session.key_id, visit.now)
    await documents.update_or_create(SAVED_VIEWS, key, (view,), lambda views: with_view(views, view))
    undo = (f"/{key}/views", {"do": ["remove"], "name": [name]})
    return Redirect(visit.link("views"), sentence=f"Saved as {name}", undo=undo)


def _refused(visit: Visit, name: str, path: str, known: Sequence[SavedView]) -> str:
    """The reason that a view is not saved for; empty: it is saved."""
    if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
        return f"A view has a name of 1 to {NAME_CHARS_MAX} characters."
    if not path.startswith(f"/{_key(visit)}/") or len(path) > PATH_CHARS_MAX or not path.isprintable():
        return f"A view is a page of this account and region, of {PATH_CHARS_MAX:,} characters at most."
    if len(known) >= VIEWS_MAX and all(view.name != name for view in known):
        return f"There are {VIEWS_MAX} views here, which is the most: remove one first."
    return ""


async def _page(visit: Visit, notice: str, status: int = 200) -> Page:
    rows: list[dict[str, Any]] = [
        {"view": view, "link": f"{visit.base}{view.path}"} for view in await _views(visit)
    ]
    values = {
        "rows": rows,
        "notice": notice,
        "to": visit.asked("to")[:PATH_CHARS_MAX],
        "name": visit.asked("name"),
        "name_chars_max": NAME_CHARS_MAX,
        "action": visit.link("views"),
    }
    return Page("views.html", values, status)


async def _views(visit: Visit) -> Sequence[SavedView]:
    return await visit.engine.resources.documents.get(SAVED_VIEWS, _key(visit)) or ()


def _key(visit: Visit) -> str:
    return f"{visit.scope.account}/{visit.scope.region}"
