"""Messages: those of a queue without receiving them, and one of them."""

from typing import Any, Final

from redrive.aws.sns.notifications.delivery_log import FAILURES, log_group
from redrive.console import json_text
from redrive.console.pages.letters import attributes_of
from redrive.console.visit import PAGE_ROWS, Missing, Page, Visit, whole
from redrive.engine.ports import LookRequest
from redrive.model.delivery import Delivery
from redrive.model.names import ResourceName
from redrive.model.search import published_id
from redrive.model.topic import Subscription

VIEWS: Final = ("all", "waiting", "in-flight", "delayed")
OWED_SHOWN: Final = 10  # of a subscription, those that arrived first
_LOOKED_AT: Final = 1000  # of a queue, for a page of one view


async def listed(visit: Visit) -> Page:
    """Messages of a queue in order of arrival: nothing is received, and nothing is counted as received."""
    queue = await visit.queue()
    view = visit.asked("view", "all")
    view = view if view in VIEWS else "all"
    newest = visit.asked("order") == "newest"
    after = visit.number("after")
    looks = PAGE_ROWS + 1 if view == "all" else _LOOKED_AT
    if newest:
        request = LookRequest(queue.id, looks, before_seq=after or None, newest_first=True)
    else:
        request = LookRequest(queue.id, looks, after_seq=after)
    deliveries = await visit.engine.operations.peek_page(request)
    fitting = [delivery for delivery in deliveries if view in ("all", state_of(delivery, visit.now))]
    page = fitting[:PAGE_ROWS]
    more = len(fitting) > PAGE_ROWS or len(deliveries) == looks
    last = page[-1].seq if len(fitting) > PAGE_ROWS else deliveries[-1].seq if deliveries else 0
    filters = {"view": view, "order": "newest" if newest else None}
    here = ("queues", queue.name.name, "messages")
    values = {
        "queue": queue,
        "view": view,
        "newest": newest,
        "views": [(name, visit.link(*here, view=name, order=filters["order"])) for name in VIEWS],
        "turned": visit.link(*here, view=view, order=None if newest else "newest"),
        "rows": [_row(visit, delivery) for delivery in page],
        "next": visit.link(*here, **filters, after=last) if more else "",
        "first": visit.link(*here, **filters) if after else "",
        "back": visit.link("queues", queue.name.name),
        "send": visit.link("queues", queue.name.name, "send"),
    }
    return Page("messages.html", values, live_seconds=2)


def state_of(delivery: Delivery, now: int) -> str:
    """`waiting`, `in-flight` or `delayed`."""
    if delivery.available_at <= now:
        return "waiting"
    return "delayed" if delivery.token is None else "in-flight"


def _row(visit: Visit, delivery: Delivery) -> dict[str, Any]:
    return {
        "delivery": delivery,
        "state": state_of(delivery, visit.now),
        "body": visit.body_of(delivery),
        "link": visit.link("queues", visit.args["queue"], "messages", str(delivery.seq)),
    }


async def one(visit: Visit) -> Page:
    """One message of a queue."""
    queue = await visit.queue()
    seq = whole(visit.args["seq"])
    deliveries = await visit.engine.operations.peek_page(LookRequest(queue.id, 1, seqs=[seq]))
    if not deliveries:
        raise Missing(f"There is no message {seq} in {queue.name.name} (any more): it may have been deleted.")
    body = visit.body_of(deliveries[0])
    message_id = published_id(deliveries[0])
    values = {
        "queue": queue,
        "delivery": deliveries[0],
        "state": state_of(deliveries[0], visit.now),
        "message_id": message_id,
        "body": body,
        "pretty": None if body is None else json_text.pretty(body),
        "attributes": attributes_of(deliveries[0].headers) if visit.bodies_shown else [],
        "life": visit.link("messages", message_id),
        "back": visit.link("queues", queue.name.name, "messages"),
    }
    return Page("message.html", values)


async def owed_first(visit: Visit, subscription: Subscription) -> list[dict[str, Any]]:
    """The deliveries that a subscription is owed, those that arrived first, with links to their messages."""
    request = LookRequest(subscription.queue_id, OWED_SHOWN)
    return [
        {
            "delivery": delivery,
            "state": state_of(delivery, visit.now),
            "id": published_id(delivery),
            "link": visit.link("messages", published_id(delivery)),
        }
        for delivery in await visit.engine.operations.peek_page(request)
    ]


def delivery_logs(visit: Visit, topic: ResourceName, pattern: str = "") -> dict[str, str]:
    """Links to the delivery-status logs of a topic: of what was delivered, and of what failed."""
    group = log_group(topic).name
    return {
        "delivered": visit.link("logs", "group", name=group, pattern=pattern),
        "failed": visit.link("logs", "group", name=f"{group}{FAILURES}", pattern=pattern),
    }
