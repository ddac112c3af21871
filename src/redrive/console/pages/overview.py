"""Overview: is anything wrong, and where to look."""

from collections.abc import Collection, Sequence
from math import inf
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from redrive.access.keys import is_account
from redrive.console.navigation import read_place
from redrive.console.rates import MINUTES, rates
from redrive.console.unattended import WAITED_MINUTES, unattended
from redrive.console.visit import Page, Redirect, Unusable, Visit
from redrive.engine.operations import PLACES_MAX, DeadLetterQueue
from redrive.model.names import ResourceName
from redrive.model.task import MoveTask

NEEDS_MAX: Final = 50
COUNTED_MAX: Final = 100_000  # of each dead-letter queue: 8 ms


async def page(visit: Visit) -> Page:
    """The things that need a person, in the accounts and regions that the visitor sees: fifty of them at a time."""
    seen = await places_seen(visit)
    shown = seen.places
    dead = await visit.engine.operations.dead_letter_queues_of(shown, COUNTED_MAX)
    needs = [
        *_dead(visit, dead),
        *await _resting(visit, shown),
        *await _unattended(visit, shown, {each.queue.name for each in dead}),
    ]
    tasks = [_task(visit, task) for task in await visit.engine.operations.active_redrive_tasks()]
    tasks = [task for task in tasks if visit.session.sees(task["account"])]
    values = {
        "needs": needs,
        "tasks": tasks,
        "rates": await rates(visit.installation.telemetry, shown, visit.now),
        "minutes": MINUTES,
        **await _node(visit),
        "links": [_links(visit, place) for place in shown],
        "of": visit.asked("of"),
        "first": visit.link_anywhere("") if visit.asked("of") or visit.asked("after") else "",
        "next": "" if seen.last is None else _behind(visit, seen.last),
    }
    return Page("overview.html", values, live_seconds=5)


async def chosen(visit: Visit) -> Redirect:
    """Go where the picker leads: to a place's dead letters, or to all places of an account or Azure subscription."""
    account, slash, region = visit.asked("place").strip().partition("/")
    if not account or not visit.session.sees(account) or (slash and not region):
        raise Unusable(
            "Name an account or an Azure subscription that you see, or one of its places: account/region."
        )
    if not slash:
        return Redirect(f"{visit.base}/?{urlencode({'of': account})}")
    return Redirect(visit.link_in(ResourceName(account, region, ""), "dead-letters"))


async def keys(visit: Visit) -> Page:  # noqa: ARG001 - of every page
    """The keyboard's shortcuts."""
    return Page("keys.html")


class Seen(NamedTuple):
    """Accounts and regions, in the order of their keys.

    Attributes:
        places: Those with queues or topics that the visitor sees.
        last: The last that was looked at, where there may be more behind it; None: these are all.
    """

    places: list[ResourceName]
    last: ResourceName | None


async def places_seen(visit: Visit) -> Seen:
    """The places that a visitor asks for and sees, of the next fifty that there are.

    Those of the visitor's own account are found behind any number of others. Whatever else there is, such as its Azure
    subscriptions, is among the next fifty, or is named to the picker.
    """
    operations, session = visit.engine.operations, visit.session
    if only := read_place(visit.asked("place")):
        return Seen([only] if session.sees(only.account) else [], None)
    of, after = visit.asked("of"), read_place(visit.asked("after"))
    found = await operations.places(of, after)
    seen = {place for place in found if session.sees(place.account) and not place.private}
    if session.account is not None and not of and after is None:
        seen.update(await operations.places(session.account))
    places = sorted(seen, key=lambda place: place.key)
    return Seen(places, found[-1] if len(found) >= PLACES_MAX else None)


def _behind(visit: Visit, place: ResourceName) -> str:
    """The link to the places behind the last that was looked at; the one with an empty name is Overview itself."""
    return visit.link_anywhere("", of=visit.asked("of"), after=f"{place.account}/{place.region}")


async def _node(visit: Visit) -> dict[str, Any]:
    """This node, its store, and how many others share that."""
    installation = visit.installation
    own, *others = await installation.nodes.all()
    seconds = installation.commit_seconds()
    return {
        "node": own,
        "others": len(others),
        "silent": sum(node.is_silent(installation.nodes.now()) for node in others),
        "store": own.setting("store").partition(":")[0],
        "store_bytes": installation.store_bytes(),
        "commit": "" if seconds is None else _within(seconds),
    }


def _within(seconds: float) -> str:
    """`0.5 ms or less`, by the bounds that commits are counted by."""
    return "more than 10 s" if seconds == inf else f"{seconds * 1000:g} ms or less"


def _links(visit: Visit, place: ResourceName) -> dict[str, str]:
    return {
        "name": f"{place.account} · {place.region}",
        "queues": visit.link_in(place, "queues"),
        "dead": visit.link_in(place, "dead-letters"),
        "event_grid": "" if is_account(place.account) else visit.link_in(place, "event-grid"),
    }


def _dead(visit: Visit, queues: Sequence[DeadLetterQueue]) -> list[dict[str, Any]]:
    """The dead-letter queues that are not empty, the fullest first."""
    found = sorted((queue for queue in queues if queue.letters), key=lambda queue: -queue.letters)
    return [
        {
            "kind": "dead",
            "number": queue.letters,
            "at_most": queue.at_most,
            "name": queue.queue.name.name,
            "link": visit.link_in(queue.queue.name, "dead-letters", queue.queue.name.name),
            "place": f"{queue.queue.name.account} · {queue.queue.name.region}",
        }
        for queue in found[:NEEDS_MAX]
    ]


async def _resting(visit: Visit, places: list[ResourceName]) -> list[dict[str, Any]]:
    """The places where endpoints rest."""
    circuits = await visit.engine.operations.open_circuits()
    found = []
    for place in places:
        prefix = f"{place.account}/{place.region}/"
        resting = [state for key, state in circuits.items() if key.startswith(prefix)]
        if not resting:
            continue
        first = min(resting, key=lambda state: state.until)
        found.append(
            {
                "kind": "rest",
                "number": len(resting),
                "until": first.until,
                "reason": f"{first.reason} {first.status or ''}".strip(),
                "link": visit.link_in(place, "endpoints"),
                "place": f"{place.account} · {place.region}",
            }
        )
    return found


async def _unattended(
    visit: Visit, places: list[ResourceName], dead_letter_queues: Collection[ResourceName]
) -> list[dict[str, Any]]:
    """The queues from which nobody receives, the longest waiting first."""
    levels, telemetry = visit.installation.queue_levels(), visit.installation.telemetry
    found = await unattended(levels, telemetry, places, dead_letter_queues, visit.now)
    return [
        {
            "kind": "unattended",
            "number": level.counts.available,
            "age_ms": level.age_seconds * 1000,
            "minutes": WAITED_MINUTES,
            "name": level.name.name,
            "link": visit.link_in(level.name, "queues", level.name.name),
            "place": f"{level.name.account} · {level.name.region}",
        }
        for level in found
    ]


def _task(visit: Visit, task: MoveTask) -> dict[str, Any]:
    place = task.source._replace(name="")
    return {
        "account": place.account,
        "task": task,
        "link": visit.link_in(place, "dead-letters", task.source.name, "tasks", task.id),
    }
