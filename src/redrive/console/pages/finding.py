"""The palette: names and message ids found while typing, as a list for the script and as a page without it."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from redrive.console import navigation
from redrive.console.visit import Page, Visit
from redrive.console.words import scope_text
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Topic

T = TypeVar("T", Queue, Topic)
FOUND_MAX: Final = 12
_OF_A_KIND: Final = 5
_LOOKED_THROUGH: Final = 500  # names of a kind, where too few begin with the text: 4 ms
_ID: Final = re.compile(r"[0-9a-fA-F-]{8,64}")


class Hit(NamedTuple):
    """Something that a text names."""

    icon: str  # Its symbol
    name: str
    kind: str  # After the name, in words
    link: str  # Its page


async def page(visit: Visit) -> Page:
    """Everything that the text names in the account and region that the visitor came from."""
    text = visit.parameter("q").strip()[:200]
    scope = await navigation.scope_of(visit) or navigation.default_scope(visit)
    hits = await _hits(visit, scope, text) if text else []
    return Page("find.html", {"q": text, "hits": hits[:FOUND_MAX]}, instead_of="")


async def _hits(visit: Visit, scope: ResourceName, text: str) -> list[Hit]:
    """The things that a text may name, a few of each kind: a message id first, then scopes, then names."""
    hits = []
    if _ID.fullmatch(text):
        hits.append(Hit("trace", f"Trace message {text[:36]}", "", visit.link_in(scope, "messages", text)))
    hits += await _scopes(visit, text)
    hits += await _queues_and_topics(visit, scope, text)
    hits += await _functions_and_alarms(visit, scope, text)
    return hits


async def _scopes(visit: Visit, text: str) -> list[Hit]:
    """The first three accounts and regions, of those the visitor may see, that have the text in their names."""
    scopes = await visit.engine.operations.dead_letters.scopes(visit.session.account or "")
    visible = [each for each in scopes if visit.session.sees(each.account) and not each.private]
    return [
        Hit("user", scope_text(each), "account and region", f"{visit.base}/?{navigation.at_query(each)}")
        for each in visible
        if text in f"{each.account}/{each.region}"
    ][:3]


async def _queues_and_topics(visit: Visit, scope: ResourceName, text: str) -> list[Hit]:
    """The queues and topics with the text in their names, and before them those queues that take dead letters."""
    resources = visit.engine.resources
    targets = await visit.engine.operations.dead_letters.targets(scope.account, scope.region)
    queues = await _matching(resources.queues.find, scope, text)
    topics = await _matching(resources.topics.find, scope, text)
    letters = [
        Hit("dead", each.name.name, "dead letters", visit.link_in(scope, "dead-letters", each.name.name))
        for each in queues
        if each.name in targets
    ]
    return [
        *letters,
        *(
            Hit("queue", each.name.name, "queue", visit.link_in(scope, "queues", each.name.name))
            for each in queues
        ),
        *(
            Hit("topic", each.name.name, "topic", visit.link_in(scope, "topics", each.name.name))
            for each in topics
        ),
    ]


async def _matching(
    find: Callable[[ResourceName, str, int], Awaitable[Sequence[T]]], scope: ResourceName, text: str
) -> list[T]:
    """The things whose names begin with the text; then, of the first ones here, those that contain it in any case."""
    hits = list(await find(scope._replace(name=text), "", _OF_A_KIND))
    if len(hits) < _OF_A_KIND:
        part, known = text.lower(), {each.name for each in hits}
        others = [
            each
            for each in await find(scope._replace(name=""), "", _LOOKED_THROUGH)
            if part in each.name.name.lower() and each.name not in known
        ]
        hits += sorted(others, key=lambda each: each.name.name.lower().index(part))
    return hits[:_OF_A_KIND]


async def _functions_and_alarms(visit: Visit, scope: ResourceName, text: str) -> list[Hit]:
    """Functions and alarms whose names contain the text."""
    installation = visit.installation
    functions = _names_with([each.name for each in await installation.functions.all()], scope, text)
    alarms = _names_with([each.name for each in await installation.alarms.all()], scope, text)
    return [
        *(Hit("function", name, "function", visit.link_in(scope, "functions", name)) for name in functions),
        *(Hit("alarm", name, "alarm", visit.link_in(scope, "alarms", "alarm", name=name)) for name in alarms),
    ]


def _names_with(names: Sequence[ResourceName], scope: ResourceName, text: str) -> list[str]:
    part = text.lower()
    here = [name.name for name in names if name._replace(name="") == scope and part in name.name.lower()]
    return here[:_OF_A_KIND]


async def rooms(visit: Visit) -> Page:
    """The navigation alone, which asks for itself again."""
    return Page("rooms.html", {"room": visit.parameter("room")})
