"""Subscriptions: which receivers are on hold or fail, why, and since when; and how one is resumed."""

from typing import Any, Final

from redrive.console.health import answer_series, health
from redrive.console.hour import LISTED_MS, last_hour
from redrive.console.visit import Missing, Page, Redirect, Unusable, Visit
from redrive.console.words import clock_time
from redrive.engine.operations import EndpointCondition, EndpointState
from redrive.model.attempt import Reason
from redrive.model.circuit import OpenCircuit
from redrive.model.queue import DAY_MS
from redrive.model.topic import Subscription

SHOWN_MAX: Final = 50
LOOKED_AT: Final = 1000
COUNTED_MAX: Final = 10_000  # of each backlog
HOLD_MS_MAX: Final = DAY_MS
_STATES: Final = ("trouble", "all")
# Of a circuit breaker, in the form that opens it again.
_NUMBERS: Final = ("status", "since", "until", "failures", "rests")


async def listing(visit: Visit) -> Page:
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
    matches = [
        (subscription, condition)
        for subscription, condition in zip(looked_at, conditions, strict=True)
        if state == "all" or condition.troubled
    ]
    page = matches[:SHOWN_MAX]
    receivers = [subscription for subscription, _ in page]
    owed = await visit.engine.messages.count_backlogs(receivers, COUNTED_MAX)
    hour = await last_hour(visit.installation.telemetry, answer_series(receivers), visit.now, LISTED_MS)
    last = subscriptions[-1] if len(subscriptions) == limit else None  # the next page begins behind it
    if len(matches) > SHOWN_MAX:
        last = receivers[-1]
    values = {
        "state": state,
        "filter": pattern,
        "rows": [
            {
                **_row(visit, subscription, condition),
                "owed": sum(owed[subscription.queue_id]),
                "health": health(hour, subscription),
            }
            for subscription, condition in page
        ],
        "at_most": COUNTED_MAX,
        "resting": sum(condition.condition is EndpointState.CIRCUIT_OPEN for condition in conditions),
        "failing": sum(condition.condition is EndpointState.FAILING for condition in conditions),
        "looked_at": len(looked_at),
        "states": [(name, visit.link("endpoints", state=name, filter=pattern)) for name in _STATES],
        "next": ""
        if last is None
        else visit.link("endpoints", state=state, filter=pattern, after=f"{last.topic.name}/{last.id}"),
        "form": visit.link("endpoints"),
    }
    return Page("endpoints.html", values, live_seconds=5)


def _row(visit: Visit, subscription: Subscription, condition: EndpointCondition) -> dict[str, Any]:
    """The row of an endpoint: its condition, and links to its subscription, topic and dead letters."""
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
    subscription = await _subscription(visit)
    before = await visit.engine.operations.circuit(subscription)
    await visit.engine.operations.close_circuit(subscription)
    address = subscription.redacted_endpoint
    if before is None:
        return Redirect(visit.link("endpoints"), sentence=f"{address} was not on hold")
    fields = {name: [str(getattr(before, name))] for name in ("reason", *_NUMBERS)}
    undo = (
        visit.link("endpoints", "hold").removeprefix(visit.base),
        {"topic": [subscription.topic.name], "id": [subscription.id], **fields},
    )
    sentence = f"{address} is resumed: waiting deliveries are tried now"
    return Redirect(visit.link("endpoints"), sentence=sentence, undo=undo)


async def hold(visit: Visit) -> Redirect:
    """Take back that a receiver was resumed: it is on hold again, for as long as it was to be."""
    subscription = await _subscription(visit)
    address = subscription.redacted_endpoint
    try:
        reason = Reason(visit.parameter("reason"))
    except ValueError:
        raise Unusable(f"There is no reason {visit.parameter('reason')[:40]}.") from None
    status, since, until, failures, rests = (visit.number(name) for name in _NUMBERS)
    circuit = OpenCircuit(reason, status, since, until, failures, rests)
    if circuit.until <= visit.now:
        return Redirect(visit.link("endpoints"), sentence=f"{address} would be tried again by now anyway")
    if circuit.until > visit.now + HOLD_MS_MAX:
        raise Unusable("A receiver is on hold for a day at most.")
    await visit.engine.operations.reopen_circuit(subscription, circuit)
    sentence = f"{address} is on hold again until {clock_time(circuit.until)}; attempts made meanwhile are not undone"
    return Redirect(visit.link("endpoints"), sentence=sentence)


async def _subscription(visit: Visit) -> Subscription:
    """The subscription that the form names; raises Missing if there is none."""
    topic = visit.scope._replace(name=visit.parameter("topic"))
    subscription = await visit.engine.resources.subscriptions.get(topic, visit.parameter("id"))
    if subscription is None:
        raise Missing(f"There is no subscription {visit.parameter('id')[:80]} of {topic.name[:80]}.")
    return subscription
