"""Dead letters: the queues that have them, and the workbench of one queue."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from redrive.aws.lambda_.documents.backlogs import TO_FUNCTION
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.dead_letters import reason_of
from redrive.azure.eventgrid.settings import delivery_settings
from redrive.console import links
from redrive.console.arrivals import last_days
from redrive.console.commands import aws_command
from redrive.console.letter_blobs import copies_of
from redrive.console.message_list import Choice, Look, facets, look
from redrive.console.visit import PAGE_ROWS, REFUSED, Page, Unusable, Visit
from redrive.console.words import receiver
from redrive.engine.operations import SET_ASIDE, CauseDetails, DeadLetter, DeadLetterQueue
from redrive.engine.ports import Cause, CauseCount
from redrive.model.delivery import Delivery
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue
from redrive.model.topic import Subscription

CAUSES_MAX: Final = 50
CAUSES_OPEN: Final = 8  # of them are shown at once: the messages stand beneath
CAUSES_OF_MAX: Final = 3  # queues of a list: 8 ms each
COUNTED_MAX: Final = 100_000  # of each cause: 8 ms


async def listing(visit: Visit) -> Page:
    """The dead-letter queues of an account's region, and who sends to them."""
    scope = visit.scope
    queues = await visit.engine.operations.dead_letters.queues(scope.account, scope.region, COUNTED_MAX)
    aside = await visit.engine.resources.queues.get(scope._replace(name=SET_ASIDE))
    queues.sort(key=lambda each: (-each.number, each.queue.name.name))
    begin = visit.number("from")
    page = queues[begin : begin + PAGE_ROWS]
    days = await last_days(visit.installation.telemetry, [each.queue for each in page], visit.now)
    oldest = {each.name: each.oldest_at for each in visit.installation.queue_levels()}
    tasks = {task.source: task for task in await visit.installation.redrives.all() if task.state.active}
    rows = [
        {
            "name": each.queue.name.name,
            "number": each.number,
            "at_most": each.at_most,
            "link": visit.link("dead-letters", each.queue.name.name),
            "sources": [f"queue {name.name}" for name in each.from_queues]
            + [origin_text(None, subscription) for subscription in each.from_subscriptions],
            "cause": await _main_cause(visit, each) if index + begin < CAUSES_OF_MAX else None,
            "oldest_at": oldest.get(each.queue.name),
            "day": days[each.queue.id],
            "task": tasks.get(each.queue.name),
        }
        for index, each in enumerate(page)
    ]
    aside_link = visit.link("dead-letters", SET_ASIDE) if aside is not None else ""
    policy = f'{{"deadLetterTargetArn": "arn:aws:sqs:{scope.region}:{scope.account}:orders-dead", "maxReceiveCount": 3}}'
    url = f"{visit.host}/{scope.account}/orders"
    attributes = orjson.dumps({"RedrivePolicy": policy}).decode()
    start = aws_command(visit, "sqs", "set-queue-attributes", "--queue-url", url, "--attributes", attributes)
    behind = begin + PAGE_ROWS
    values = {
        "rows": rows,
        "aside": aside_link,
        "start": start,
        "number": len(queues),
        "first": visit.link("dead-letters") if begin else "",
        "next": visit.link("dead-letters", **{"from": behind}) if behind < len(queues) else "",
    }
    return Page("dead_letter_queues.html", values, live_seconds=10)


async def _main_cause(visit: Visit, dead: DeadLetterQueue) -> CauseCount | None:
    """The cause that most letters of a queue died of."""
    if not dead.number:
        return None
    groups = await visit.engine.operations.dead_letters.cause_counts(dead.queue, CAUSES_MAX, COUNTED_MAX)
    return groups[0] if groups else None


async def workbench(visit: Visit) -> Page:
    """The causes of a queue's dead letters, and the messages of one cause."""
    queue = await visit.queue()
    operations = visit.engine.operations
    groups = await operations.dead_letters.cause_counts(queue, CAUSES_MAX, COUNTED_MAX)
    open_group = chosen_group(visit, groups)
    look_result = await _look(visit, queue, None if open_group is None else open_group.cause)
    shown_max = CAUSES_MAX if visit.parameter("causes") == "all" else CAUSES_OPEN
    frequent = [group for index, group in enumerate(groups) if index < shown_max or group is open_group]
    oldest = [] if not groups else [min(groups, key=lambda group: group.first_seq)]
    ends = await operations.dead_letters.ends(queue, [*frequent, *oldest])
    letters = await operations.dead_letters.of([*ends, *look_result.page])
    end_letters, page_letters = letters[: len(ends)], letters[len(ends) :]
    causes = await operations.dead_letters.causes_of(frequent, letters)
    counts = await visit.engine.messages.count(queue, COUNTED_MAX)
    tasks = await operations.redrives.tasks_of(queue.name)
    is_capped = counts.available >= COUNTED_MAX or any(group.capped for group in groups)
    others = 0 if is_capped else max(0, counts.available - sum(group.number for group in groups))
    sources = await operations.dead_letters.sources(queue)
    values = {
        "queue": queue,
        "is_aside": queue.name.name == SET_ASIDE,
        "counts": counts,
        "at_most": COUNTED_MAX,
        "cause_number": len(groups),
        "every_cause": visit.link(
            "dead-letters",
            queue.name.name,
            cause=visit.parameter("cause"),
            q=visit.parameter("q"),
            causes="all",
        ),
        "causes": [_cause_row(visit, cause, chosen=cause.count is open_group) for cause in causes],
        "others": others,
        "cause": open_group,
        "cause_id": "" if open_group is None else cause_id(open_group.cause),
        "sources": [source_text(source) for source in sources],
        "copies": await copies_of(visit, sources),
        "task": next((task for task in tasks if task.state.active), None),
        "oldest": min((letter.delivery.sent_at for letter in end_letters), default=0),
        "last_task": tasks[0] if tasks and tasks[0].started_at > visit.now - DAY_MS else None,
        "letters": [_row(visit, letter) for letter in page_letters],
        **look_result.values,
    }
    status = REFUSED if look_result.values["refused"] else 200
    return Page("workbench.html", values, status, live_seconds=0 if look_result.values["q"] else 10)


async def search_slice(visit: Visit) -> Page:
    """The next slice of a search: what the workbench asks for by itself until it is stopped."""
    queue = await visit.queue()
    key = _asked_cause(visit)
    look_result = await _look(visit, queue, key)
    letters = await visit.engine.operations.dead_letters.of(look_result.page)
    rows = [_row(visit, letter) for letter in letters]
    return Page("search_slice.html", {"queue": queue, "cause": key, "letters": rows, **look_result.values})


async def common_values(visit: Visit) -> Page:
    """Values that the newest dead letters of a cause share, as terms of the search."""
    queue, key = await visit.queue(), _asked_cause(visit)
    here, chosen = ("dead-letters", queue.name.name), {"cause": visit.parameter("cause")}
    return Page("facets.html", await facets(visit, Choice(queue, here, chosen, newest=True, cause=key)))


def _asked_cause(visit: Visit) -> Cause | None:
    """The cause that a link names; None: all of them."""
    cause = visit.parameter("cause")
    return None if cause in ("", "all") else read_cause(cause)


def chosen_group(visit: Visit, groups: Sequence[CauseCount]) -> CauseCount | None:
    """The cause that the visitor chose; None: all causes, or one that nothing has any more.

    Raises:
        Unusable: What names it is written otherwise.
    """
    key = _asked_cause(visit)
    return next((group for group in groups if group.cause == key), None)


def read_cause(text: str) -> Cause:
    """The cause that a link names; raises Unusable if it is written otherwise."""
    origin, colon, failure = text.partition(":")
    if not (colon and failure and origin.isascii() and origin.isdigit() and len(origin) <= 18):  # noqa: PLR2004 - of ours
        raise Unusable(f"{text[:40]!r} is not a cause.")
    return Cause(int(origin), failure)


def cause_id(key: Cause) -> str:
    """A cause as a link names it."""
    return f"{key.origin}:{key.failure}"


def origin_text(queue: ResourceName | None, subscription: Subscription | None) -> str:
    """The origin of a dead letter, in one line."""
    if subscription is not None and subscription.protocol == TO_FUNCTION:
        return f"function {subscription.topic.name.removesuffix(':$LATEST')}"
    if subscription is not None:
        return f"{subscription.topic.name} → {receiver(subscription.redacted_endpoint)}"
    return f"queue {queue.name}" if queue is not None else "no longer known"


def source_text(source: Queue | Subscription) -> str:
    """A queue or subscription that sends its dead letters here."""
    if isinstance(source, Subscription):
        return origin_text(None, source)
    after = source.dead_letter.attempts_max if source.dead_letter else 0
    return f"queue {source.name.name} (after {after} {'receive' if after == 1 else 'receives'})"


def azure_reason(letter: DeadLetter) -> str:
    """The reason that Event Grid names for its own dead letter; empty for any other."""
    subscription, failure = letter.from_subscription, letter.delivery.failure
    if subscription is None or failure is None or not names.is_event_topic(subscription.topic):
        return ""
    return reason_of(failure, letter.attempts, delivery_settings(subscription))


def _cause_row(visit: Visit, cause: CauseDetails, *, chosen: bool) -> dict[str, Any]:
    """The row of a cause: its number, first and last letter, and the answer that the last one got."""
    reason, _, status = cause.count.cause.failure.partition(" ")
    last = cause.last
    response = last.notes[-1].response if last is not None and last.notes else ""
    return {
        "reason": reason,
        "status": status,
        "azure_reason": "" if last is None else azure_reason(last),
        "from": origin_text(cause.from_queue, cause.from_subscription),
        "number": cause.count.number,
        "capped": cause.count.capped,
        "first": None if cause.first is None else _died_at(cause.first),
        "last": None if last is None else _died_at(last),
        "response": response,
        "chosen": chosen,
        "link": visit.link("dead-letters", visit.args["queue"], cause=cause_id(cause.count.cause)),
    }


def _died_at(letter: DeadLetter) -> int:
    """The moment that its last attempt ended, or else that it was sent."""
    return letter.notes[-1].at if letter.notes else letter.delivery.sent_at


async def _look(visit: Visit, queue: Queue, key: Cause | None) -> Look:
    """The messages of a cause, or of all of them, newest first unless the address says otherwise."""
    here, chosen = ("dead-letters", queue.name.name), {"cause": visit.parameter("cause")}
    look_result = await look(
        visit,
        Choice(
            queue,
            here,
            chosen,
            newest=visit.parameter("order", "newest") == "newest",
            cause=key,
            usual="newest",
        ),
    )
    of_cause = {"cause": "all" if key is None else cause_id(key), "q": look_result.values["q"]}
    order = look_result.values["order"]
    grows = order == "newest" and not visit.number("after")
    seen = look_result.page[0].seq if look_result.page else 0
    values = {
        "newer": _newer(visit, look_result.page) if grows else 0,
        "page_rows": PAGE_ROWS,
        "newest_first": visit.link(*here, **chosen, q=look_result.values["q"], order=order),
        "live_from": visit.link(*here, **of_cause, order=order, seen=seen) if grows else visit.here,
        "download": [
            (kind, visit.link(*here, "download", **of_cause, format=kind)) for kind in ("jsonl", "csv")
        ],
    }
    return Look(look_result.page, {**look_result.values, **values})


def _newer(visit: Visit, deliveries: Sequence[Delivery]) -> int:
    """The number of dead letters that came since the page was shown whose live part asks."""
    seen = visit.number("seen")
    return sum(delivery.seq > seen for delivery in deliveries) if visit.parameter("seen") else 0


def _row(visit: Visit, letter: DeadLetter) -> dict[str, Any]:
    """The row of a dead letter, with links to it and to the trace of its message."""
    delivery = letter.delivery
    return {
        "seq": delivery.seq,
        "sent_at": delivery.sent_at,
        "attempts": letter.attempts,
        "failure": delivery.failure,
        "body": visit.body_of(delivery),
        "trace": links.trace(visit, visit.args["queue"], delivery),
        "in_flight": delivery.token is not None and delivery.available_at > visit.now,
        "link": visit.link(
            "dead-letters", visit.args["queue"], str(delivery.seq), cause=visit.parameter("cause")
        ),
    }
