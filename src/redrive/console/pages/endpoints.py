"""Subscriptions: which receivers are on hold or fail, why, and since when; and how one is resumed."""

from typing import Any, Final

from redrive.console.health import answer_series, health
from redrive.console.hour import LISTED_MS, last_hour
from redrive.console.visit import Missing, Page, Redirect, Visit
from redrive.engine.operations import EndpointCondition, EndpointState
from redrive.model.topic import Subscription

SHOWN_MAX: Final = 50
LOOKED_AT: Final = 1000
COUNTED_MAX: Final = 10_000  # of each backlog
_STATES: Final = ("trouble", "all")


async def listed(visit: Visit) -> Page:
    """The endpoints of an account's region that are not simply served, or all of them."""
    scope = visit.scope
    state = visit.parameter("state", "trouble")
    state = state if state in _STATES else "trouble"
    pattern = visit.parameter("filter").strip()
    after = visit.parameter("after")
    limit = LOOKED_AT if state == "trouble" or pattern else SHOWN_MAX + 1
    subscriptions = await visit.engine.resources.subscriptions.of_account(
        scope.account, scope.region, scope._replace(name=after).key if after else "", limit
    )
    looked_at = [
        each
        for each in subscriptions
        if not pattern or pattern in f"{each.topic.name} {each.protocol} {each.endpoint}"
    ]
    conditions = await visit.engine.operations.conditions.of_each(looked_at)
    pairs = list(zip(looked_at, conditions, strict=True))
    fitting = [pair for pair in pairs if state == "all" or pair[1].troubled]
    page = fitting[:SHOWN_MAX]
    receivers = [each for each, _ in page]
    owed = await visit.engine.messages.count_backlogs(receivers, COUNTED_MAX)
    hour = await last_hour(visit.installation.telemetry, answer_series(receivers), visit.now, LISTED_MS)
    more = len(fitting) > SHOWN_MAX or len(subscriptions) == limit
    last = (page[-1][0] if len(fitting) > SHOWN_MAX else subscriptions[-1]) if subscriptions else None
    values = {
        "state": state,
        "filter": pattern,
        "rows": [
            {
                **_row(visit, *pair),
                "owed": sum(owed[pair[0].queue_id]),
                "health": health(hour, pair[0]),
            }
            for pair in page
        ],
        "at_most": COUNTED_MAX,
        "resting": sum(condition.condition is EndpointState.CIRCUIT_OPEN for condition in conditions),
        "failing": sum(condition.condition is EndpointState.FAILING for condition in conditions),
        "looked_at": len(looked_at),
        "states": [(name, visit.link("endpoints", state=name, filter=pattern)) for name in _STATES],
        "next": visit.link("endpoints", state=state, filter=pattern, after=f"{last.topic.name}/{last.id}")
        if more and last is not None
        else "",
        "form": visit.link("endpoints"),
    }
    return Page("endpoints.html", values, live_seconds=5)


def _row(visit: Visit, subscription: Subscription, condition: EndpointCondition) -> dict[str, Any]:
    return {
        "subscription": subscription,
        "condition": condition,
        "circuit": condition.circuit,
        "failing": condition.failing,
        "link": visit.link("topics", subscription.topic.name, subscription.id),
        "topic_link": visit.link("topics", subscription.topic.name),
        "dead_link": ""
        if subscription.dead_letter is None
        else visit.link("dead-letters", subscription.dead_letter.name),
    }


async def change(visit: Visit) -> Redirect:
    """Resume a receiver that is on hold: what waited is tried at once."""
    topic = visit.scope._replace(name=visit.parameter("topic"))
    subscription = await visit.engine.resources.subscriptions.get(topic, visit.parameter("id"))
    if subscription is None:
        raise Missing(f"There is no subscription {visit.parameter('id')[:80]} of {topic.name[:80]}.")
    lifted = await visit.engine.operations.close_circuit(subscription)
    address = subscription.redacted_endpoint
    sentence = f"{address} is resumed: what waited is tried now" if lifted else f"{address} was not on hold"
    return Redirect(visit.link("endpoints"), sentence=sentence)
