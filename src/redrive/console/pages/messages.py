"""Messages: those of a queue without receiving them, and one of them."""

from typing import Any, Final

from redrive.aws.sns.status_log import FAILURES, log_group
from redrive.console import json_text, links
from redrive.console.forecast import forecast
from redrive.console.message_list import Choice, Look, facets, look
from redrive.console.pages.letters import attributes_of
from redrive.console.visit import REFUSED, Missing, Page, Visit, whole
from redrive.engine.ports import LookRequest
from redrive.model.circuit import OpenCircuit
from redrive.model.delivery import Delivery
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.retry import RetrySchedule
from redrive.model.search import published_id
from redrive.model.topic import Subscription

VIEWS: Final = ("all", "waiting", "in-flight", "delayed")
OWED_SHOWN: Final = 10  # of a subscription, those that arrived first
_COUNTED_MAX: Final = 10_000  # of each kind: 3 ms


async def listing(visit: Visit) -> Page:
    """Messages of a queue in order of arrival: nothing is received, and nothing is counted as received."""
    queue = await visit.queue()
    look_result = await look(visit, _choice(visit, queue))
    view, here = _view(visit), ("queues", queue.name.name, "messages")
    page_query = {"q": look_result.values["q"], "order": "newest" if look_result.values["newest"] else ""}
    values = {
        **_rows(visit, queue, look_result),
        "counts": await visit.engine.messages.count(queue, _COUNTED_MAX),
        "at_most": _COUNTED_MAX,
        "view": view,
        "views": [
            (name, visit.link(*here, view="" if name == VIEWS[0] else name, **page_query)) for name in VIEWS
        ],
        "back": visit.link("queues", queue.name.name),
        "send": visit.link("queues", queue.name.name, "send"),
    }
    status = REFUSED if look_result.values["refused"] else 200
    return Page("messages.html", values, status, live_seconds=0 if look_result.values["q"] else 2)


async def search_slice(visit: Visit) -> Page:
    """The next slice of a search: what the list asks for by itself until it is stopped."""
    queue = await visit.queue()
    return Page("message_slice.html", _rows(visit, queue, await look(visit, _choice(visit, queue))))


async def common_values(visit: Visit) -> Page:
    """Values that the newest messages of the queue share, as terms of the search."""
    return Page("facets.html", await facets(visit, _choice(visit, await visit.queue())))


def _choice(visit: Visit, queue: Queue) -> Choice:
    """The messages that the address chooses: those in one state or all, oldest or newest first."""
    view, now = _view(visit), visit.now
    fits = None if view == VIEWS[0] else lambda delivery: state_of(delivery, now) == view
    chosen = {"view": "" if view == VIEWS[0] else view}
    newest = visit.parameter("order") == "newest"
    return Choice(
        queue, ("queues", queue.name.name, "messages"), chosen, newest=newest, fits=fits, usual="oldest"
    )


def _view(visit: Visit) -> str:
    view = visit.parameter("view")
    return view if view in VIEWS else VIEWS[0]


def _rows(visit: Visit, queue: Queue, look_result: Look) -> dict[str, Any]:
    return {"queue": queue, "rows": [_row(visit, each) for each in look_result.page], **look_result.values}


def state_of(delivery: Delivery, now: int) -> str:
    """`waiting`, `in-flight` or `delayed`."""
    if delivery.available_at <= now:
        return "waiting"
    return "delayed" if delivery.token is None else "in-flight"


def _row(visit: Visit, delivery: Delivery) -> dict[str, Any]:
    """The row of a message: its state, and links to it and to its trace."""
    return {
        "delivery": delivery,
        "state": state_of(delivery, visit.now),
        "body": visit.body_of(delivery),
        "trace": links.trace(visit, visit.args["queue"], delivery),
        "link": visit.link("queues", visit.args["queue"], "messages", str(delivery.seq)),
    }


async def one(visit: Visit) -> Page:
    """One message of a queue."""
    queue = await visit.queue()
    seq = whole(visit.args["seq"])
    deliveries = await visit.engine.operations.dead_letters.peek(LookRequest(queue.id, 1, seqs=[seq]))
    if not deliveries:
        raise Missing(f"There is no message {seq} in {queue.name.name} (any more): it may have been deleted.")
    (delivery,) = deliveries
    body = visit.body_of(delivery)
    values = {
        "queue": queue,
        "delivery": delivery,
        "state": state_of(delivery, visit.now),
        "message_id": published_id(delivery),
        "body": body,
        "pretty": None if body is None else json_text.pretty(body),
        "attributes": attributes_of(delivery.headers) if visit.bodies_shown else [],
        "life": links.trace(visit, queue.name.name, delivery),
        "back": visit.link("queues", queue.name.name, "messages"),
    }
    return Page("message.html", values)


async def owed_first(
    visit: Visit, subscription: Subscription, circuit: OpenCircuit | None
) -> list[dict[str, Any]]:
    """The deliveries that a subscription is owed, those that arrived first, each with its message and its forecast."""
    schedule = await visit.engine.operations.conditions.schedule_of(subscription)
    request = LookRequest(subscription.queue_id, OWED_SHOWN)
    rows = []
    for delivery in await visit.engine.operations.dead_letters.peek(request):
        state, message_id = state_of(delivery, visit.now), published_id(delivery)
        ends = None
        if isinstance(schedule, RetrySchedule):
            until = 0 if circuit is None else circuit.until
            ends = forecast(schedule, delivery, visit.now, in_flight=state == "in-flight", held_until=until)
        rows.append(
            {
                "delivery": delivery,
                "state": state,
                "id": message_id,
                "link": visit.link("messages", message_id),
                "forecast": ends,
            }
        )
    return rows


def delivery_logs(visit: Visit, topic: ResourceName, pattern: str = "") -> dict[str, str]:
    """Links to the delivery-status logs of a topic: of what was delivered, and of what failed."""
    group = log_group(topic).name
    return {
        "delivered": visit.link("logs", "group", name=group, pattern=pattern),
        "failed": visit.link("logs", "group", name=f"{group}{FAILURES}", pattern=pattern),
    }
