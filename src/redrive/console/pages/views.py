"""Saved views: listed, saved under a name, starred, renamed and removed."""

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote

from redrive.console import navigation
from redrive.console.views import (
    NAME_CHARS_MAX,
    PATH_CHARS_MAX,
    SAVED_VIEWS,
    STARRED_MAX,
    VIEWS_MAX,
    SavedView,
    starred,
    with_view,
    without_view,
)
from redrive.console.visit import REFUSED, Page, Redirect, Visit
from redrive.model.search import terms_of


async def listing(visit: Visit) -> Page:
    """The views of an account's region, and a form for the page that one came from."""
    return await _page(visit, "")


async def change(visit: Visit) -> Page | Redirect:
    """Save a view, give it another name or a star, or remove it."""
    name, wish = visit.parameter("name").strip(), visit.parameter("do")
    if wish == "remove":
        return await _remove(visit, name)
    if wish in ("star", "unstar"):
        return await _star(visit, name, starred=wish == "star")
    former = visit.parameter("former")
    views = await _views(visit)
    former_view = next((view for view in views if view.name == former), None)
    path = visit.parameter("to") if former_view is None else former_view.path
    refusal = _refusal(visit, name, path, views)
    if refusal:
        return await _page(visit, refusal, REFUSED)
    if former_view is not None:
        view = former_view._replace(name=name)
        await _change(visit, lambda views: with_view(without_view(views, former), view))
        undo = {"name": [former], "former": [name]}
        return Redirect(visit.link("views"), sentence=f"Renamed to {name}", undo=(_form(visit), undo))
    view = SavedView(name, path, visit.session.key_id, visit.now, bool(visit.parameter("star")))
    await _change(visit, lambda views: with_view(views, view), (view,))
    undo = {"do": ["remove"], "name": [name]}
    return Redirect(visit.link("views"), sentence=f"Saved as {name}", undo=(_form(visit), undo))


async def _remove(visit: Visit, name: str) -> Redirect:
    """Remove a view; the undo saves it again."""
    views = [view for view in await _views(visit) if view.name == name]
    await _change(visit, lambda views: without_view(views, name))
    star = ["yes"] if views and views[0].starred else []
    undo = (_form(visit), {"to": [views[0].path], "name": [name], "star": star}) if views else None
    sentence = f"The view {name[:NAME_CHARS_MAX]} is removed"
    return Redirect(visit.link("views"), sentence=sentence, undo=undo)


async def _star(visit: Visit, name: str, *, starred: bool) -> Redirect:
    """Put a view into the navigation, or take it out."""

    def with_star(views: Sequence[SavedView]) -> Sequence[SavedView]:
        return tuple(view._replace(starred=starred) if view.name == name else view for view in views)

    await _change(visit, with_star)
    outcome = "in the navigation now" if starred else "no longer in the navigation"
    undo = {"do": ["unstar" if starred else "star"], "name": [name]}
    sentence = f"{name[:NAME_CHARS_MAX]} is {outcome}"
    return Redirect(visit.link("views"), sentence=sentence, undo=(_form(visit), undo))


async def _change(
    visit: Visit,
    change: Callable[[Sequence[SavedView]], Sequence[SavedView]],
    first: Sequence[SavedView] = (),
) -> None:
    await visit.engine.resources.documents.update_or_create(SAVED_VIEWS, _key(visit), first, change)


def _form(visit: Visit) -> str:
    return f"/{_key(visit)}/views"


def _refusal(visit: Visit, name: str, path: str, known: Sequence[SavedView]) -> str:
    """The reason that a view is not saved for; empty: it is saved."""
    if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
        return f"A view has a name of 1 to {NAME_CHARS_MAX} characters."
    if not path.startswith(f"/{_key(visit)}/") or len(path) > PATH_CHARS_MAX or not path.isprintable():
        return f"A view is a page of this account and region, of {PATH_CHARS_MAX:,} characters at most."
    if len(known) >= VIEWS_MAX and all(view.name != name for view in known):
        return f"There are {VIEWS_MAX} views here, which is the most: remove one first."
    return ""


async def _page(visit: Visit, notice: str, status: int = 200) -> Page:
    """The saved views, and the form for the page that the address brings (`to`), named after it."""
    views = await _views(visit)
    rows: list[dict[str, Any]] = [
        {"view": view, "link": f"{visit.base}{view.path}", "page": page_words(view.path)} for view in views
    ]
    path = visit.parameter("to")[:PATH_CHARS_MAX]
    _, label, chips = page_words(path) if path else ("", "", [])
    values = {
        "rows": rows,
        "notice": notice,
        "to": path,
        "page": (label, chips),
        "name": visit.parameter("name") or " · ".join([label, *chips])[:NAME_CHARS_MAX],
        "room_for_stars": len(starred(views)) < STARRED_MAX,
        "name_chars_max": NAME_CHARS_MAX,
        "action": visit.link("views"),
    }
    return Page("views.html", values, status)


def page_words(path: str) -> tuple[str, str, list[str]]:
    """The symbol of a saved page, its name, and what was chosen on it, a text each."""
    address, _, query = path.partition("?")
    parts = [unquote(part) for part in address.split("/")[3:]]
    room = next((room for room in navigation.ROOMS if parts and room.path == parts[0]), None)
    names = [room.label if room else "Page", *parts[1:]]
    chips: list[str] = []
    for name, value in parse_qsl(query):
        if name == "name":
            names.append(value)
        elif value:
            chips += terms_of(value) if name == "q" else [f"{name} {value}"]
    return room.icon if room else "save", " · ".join(names), chips


async def _views(visit: Visit) -> Sequence[SavedView]:
    return await visit.engine.resources.documents.get(SAVED_VIEWS, _key(visit)) or ()


def _key(visit: Visit) -> str:
    return f"{visit.scope.account}/{visit.scope.region}"
