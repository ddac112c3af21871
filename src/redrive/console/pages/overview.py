"""Overview: is anything wrong, and where to look."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple
from urllib.parse import urlencode

from redrive.access.keys import is_account
from redrive.console import navigation
from redrive.console.arrivals import REMEMBERED_MS, last_arrival
from redrive.console.commands import aws_command
from redrive.console.hour import Hour, last_hour, rate_series, rates, traffic_chart
from redrive.console.navigation import read_scope
from redrive.console.needs import error_series, long_waiting, needs, receive_series, trend_series
from redrive.console.nodes import Node
from redrive.console.undelivered import COUNTED_MAX
from redrive.console.visit import Page, Redirect, Unusable, Visit
from redrive.console.words import scope_text
from redrive.engine.operations import SCOPES_MAX
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS
from redrive.telemetry.accumulators import scope_series
from redrive.telemetry.gauges import Level


async def page(visit: Visit) -> Page:
    """The things that need a person, in the accounts and regions that the visitor sees: fifty of them at a time."""
    visible = await visible_scopes(visit)
    scopes = visible.scopes
    dead = await visit.engine.operations.dead_letters.queues_of(scopes, COUNTED_MAX)
    levels = visit.installation.queue_levels()
    waiting = long_waiting(levels, scopes, {each.queue.name for each in dead})
    series = [
        *rate_series(scopes),
        *receive_series(waiting),
        *await error_series(visit, scopes),
        *await trend_series(visit, scopes, waiting),
    ]
    rankings = visit.installation.rankings
    candidates = rankings.candidates(scopes, visit.now)
    hour = await last_hour(visit.installation.telemetry, [*series, *candidates.series], visit.now)
    needs_now, node = await needs(visit, scopes, dead, waiting, hour), await _node(visit)
    values = {
        "totals": needs_now,
        "needs": needs_now.needs,
        **({} if needs_now.needs else await _last_dead_letter(visit, scopes, node["node"])),
        "rates": rates(hour, scopes, visit.now),
        "chart": traffic_chart(hour, scopes, visit.now) if scopes else None,
        "waiting": _waiting(levels, scopes, {each.queue.name for each in dead}),
        "ranking": rankings.of(scopes, candidates, hour, visit.now),
        "dead": sum(each.number for each in dead),
        "scopes_shown": len(scopes),
        **await _first_steps(visit, scopes, sent=_sent(hour, scopes) or bool(levels)),
        **node,
        "links": [_links(visit, scope) for scope in scopes],
        "of": visit.parameter("of"),
        "first": visit.link_anywhere("") if visit.parameter("of") or visit.parameter("after") else "",
        "more": visible.last is not None,
        "next": _behind(visit, visible.last),
    }
    return Page("overview.html", values, live_seconds=5)


async def go_to_scope(visit: Visit) -> Redirect:
    """Go where the picker leads: to a scope's dead letters, or to all scopes of an account or Azure subscription."""
    account, slash, region = visit.parameter("place").strip().partition("/")
    if not account or not visit.session.sees(account) or (slash and not region):
        raise Unusable(
            "Name an account or an Azure subscription that you see, or one of its places: account/region."
        )
    if not slash:
        return Redirect(f"{visit.base}/?{urlencode({'of': account})}")
    return Redirect(visit.link_in(ResourceName(account, region), "dead-letters"))


async def keys(visit: Visit) -> Page:  # noqa: ARG001 - of every page
    """The keyboard's shortcuts."""
    return Page("keys.html")


class VisibleScopes(NamedTuple):
    """Accounts and regions, in the order of their keys."""

    scopes: list[ResourceName]  # Those with queues or topics that the visitor sees
    # The last that was looked at, where there may be more behind it; None: these are all.
    last: ResourceName | None


async def visible_scopes(visit: Visit) -> VisibleScopes:
    """The scopes that a visitor asks for and sees, of the next fifty that there are.

    Those of the visitor's own account are found behind any number of others. Whatever else there is, such as its Azure
    subscriptions, is among the next fifty, or is named to the picker.
    """
    operations, session = visit.engine.operations, visit.session
    if only := read_scope(visit.parameter("place")):
        return VisibleScopes([only] if session.sees(only.account) else [], None)
    account, after = visit.parameter("of"), read_scope(visit.parameter("after"))
    candidates = await operations.dead_letters.scopes(account, after)
    visible = {scope for scope in candidates if session.sees(scope.account) and not scope.private}
    if session.account is not None and not account and after is None:
        visible.update(await operations.dead_letters.scopes(session.account))
    scopes = sorted(visible, key=lambda scope: scope.key)
    return VisibleScopes(scopes, candidates[-1] if len(candidates) >= SCOPES_MAX else None)


def _behind(visit: Visit, scope: ResourceName | None) -> str:
    """The link to the scopes behind the last that was looked at; empty: there are none, or a stranger's is the last.

    The one with an empty name is Overview itself.
    """
    if scope is None or not visit.session.sees(scope.account):
        return ""
    return visit.link_anywhere("", of=visit.parameter("of"), after=f"{scope.account}/{scope.region}")


async def _last_dead_letter(visit: Visit, scopes: list[ResourceName], node: Node) -> dict[str, Any]:
    """Template values: when the last dead letter came (None: none is known), and of how many days arrivals are known.

    Those are 14, or 0 on a node that began to count after that. Nodes begin by the system's clock, so that the age of
    one says nothing where the clock is simulated.
    """
    installation = visit.installation
    is_simulated = installation.clock_control is not None
    is_young = not is_simulated and visit.now - node.started_at < REMEMBERED_MS
    return {
        "last_dead": await last_arrival(installation.telemetry, scopes, visit.now),
        "counted_days": 0 if is_young else REMEMBERED_MS // DAY_MS,
    }


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


def _waiting(
    levels: Sequence[Level], scopes: Collection[ResourceName], dead: Collection[ResourceName]
) -> dict[str, Any]:
    """The number of messages that wait, dead letters aside, and the queue of the oldest, at the last look."""
    levels_here = [
        level
        for level in levels
        if level.name._replace(name="") in scopes and level.name not in dead and level.counts.available
    ]
    return {
        "number": sum(level.counts.available for level in levels_here),
        "oldest": max(levels_here, key=lambda level: level.age_seconds).name.name if levels_here else "",
    }


async def _first_steps(visit: Visit, scopes: Sequence[ResourceName], *, sent: bool) -> dict[str, Any]:
    """The first steps on an empty server; its page goes on showing them, as they are done, until it is left."""
    # The parameters of `visible_scopes`: somebody who looks for one of many scopes is past the first steps.
    picks_scopes = any(visit.parameter(name) for name in ("of", "after", "place"))
    if picks_scopes or len(scopes) > 1 or (scopes and not visit.parameter("steps")):
        return {"steps": []}
    steps = await first_steps(visit, scopes[0] if scopes else None, sent=sent)
    return {"steps": steps, "live_from": visit.link_anywhere("", steps="yes")}


def _sent(hour: Hour, scopes: Sequence[ResourceName]) -> bool:
    """True if something was sent in the last hour."""
    return any(hour.total(scope_series(scope, "sent")) for scope in scopes)


def _links(visit: Visit, scope: ResourceName) -> dict[str, str]:
    """The name of an account and region, and links to its pages."""
    return {
        "name": scope_text(scope),
        "alone": f"{visit.base}/?{navigation.at_query(scope)}",
        "queues": visit.link_in(scope, "queues"),
        "dead": visit.link_in(scope, "dead-letters"),
        "event_grid": "" if is_account(scope.account) else visit.link_in(scope, "event-grid"),
    }


class FirstStep(NamedTuple):
    """A first step."""

    title: str  # Title of the command
    comes_of_it: str  # Expected result
    command: str  # To be copied, whole for this server
    done: bool  # Whether it was done


async def first_steps(visit: Visit, owner: ResourceName | None, *, sent: bool) -> list[FirstStep]:
    """The steps for a server with one account's region at most.

    Args:
        visit: Whose server it is.
        owner: The account and region with queues or topics; None: there is none yet.
        sent: Whether something was sent.
    """
    queue = topic = False
    if owner is not None:
        resources = visit.engine.resources
        queue = bool(await resources.queues.find(owner, limit=1))
        topic = bool(await resources.topics.find(owner, limit=1))
    owner = owner or navigation.default_scope(visit)
    at_home = replace(visit, args={"account": owner.account, "region": owner.region})
    send = ("sqs", "send-message", "--queue-url", f"{visit.host}/{owner.account}/orders")
    return [
        FirstStep(
            "Create a queue",
            "it appears under Queues",
            aws_command(at_home, "sqs", "create-queue", "--queue-name", "orders"),
            queue,
        ),
        FirstStep(
            "Send a message",
            "the queue shows it without receiving it",
            aws_command(at_home, *send, "--message-body", '{"order": 1}'),
            queue and sent,
        ),
        FirstStep(
            "Create a topic",
            "messages to its webhooks are signed, retried, and dead-lettered if they keep failing",
            aws_command(at_home, "sns", "create-topic", "--name", "rentals"),
            topic,
        ),
        FirstStep(
            "See 40,000 dead letters and send them back",
            "on a server of its own, in 17 seconds",
            "redrive demo --stay",
            done=False,
        ),
    ]
