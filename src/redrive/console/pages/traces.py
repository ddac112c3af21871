"""Traces: the subscribers of one publication, with the attempts of each on one axis of time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from redrive.aws.sqs import names
from redrive.console import json_text
from redrive.console.pages import tail
from redrive.console.pages.letters import attributes_of, sent_attributes
from redrive.console.pages.messages import delivery_logs, state_of
from redrive.console.pages.topics import fate_of
from redrive.console.visit import Page, Redirect, Visit
from redrive.console.words import failure_words, span
from redrive.engine.operations import Trace, TracedDelivery
from redrive.engine.ports import AttemptNote, LookRequest
from redrive.model.names import ResourceName, id_text
from redrive.model.search import published_id
from redrive.model.topic import Subscription

SUBSCRIBERS_MAX: Final = 50
_LATEST_MAX: Final = 20
_HINTS: Final = (
    "topic",
    "in",
    "seq",
)  # parameters by which a link tells what the store need not be searched for
_DEAD: Final = "dead"
#: The order of rows, and the state of each with its colour and word.
_STATES: Final = {
    _DEAD: ("bad", "Dead letter"),
    "in-flight": ("info", "In flight"),
    "waiting": ("", "Waiting"),
    "delayed": ("", "Waiting"),
}
_LEFT, _RIGHT = 1.0, 97.0
_LABELS: Final = 5
STEPS_FROM_MS: Final = (
    600_000  # of a longer span the attempts would stand on each other: each gets the same room
)


class Disc(NamedTuple):
    """An attempt, or the next one."""

    x: float  # Horizontal position (percent)
    label: str  # Beneath it
    text: str  # Sentence for screen readers
    wait: str = ""  # The wait before it, in words; empty if there is no room for it
    due: bool = False  # Whether it is still to come


@dataclass(frozen=True, slots=True)
class Axis:
    """The line of time of all rows."""

    begin: int  # Its left edge (ms)
    end: int  # Its right edge (ms)
    steps: int = 0  # The room that each attempt has alike; 0: time is linear

    def discs(self, notes: Sequence[AttemptNote], next_at: int = 0) -> list[Disc]:
        """The attempts of one row in order, and the one that is due then (ms; 0: none is)."""
        discs: list[Disc] = []
        before = self.begin
        for number, note in enumerate(notes):
            at = note.at - note.duration_ms
            x = self._x(at, number)
            wait = span(at - before) if number and self._is_wide(discs[-1].x, x) else ""
            words = failure_words(f"{note.reason} {note.status or ''}")
            text = f"attempt {note.number}, {words}, took {span(note.duration_ms)}"
            discs.append(Disc(x, str(note.status or words.split()[0].lower()), text, wait))
            before = note.at
        if next_at:
            x = self._x(next_at, len(notes))
            discs.append(Disc(x, "next", f"attempt {len(notes) + 1} is due", due=True))
        return discs

    @property
    def labels(self) -> list[tuple[float, str]]:
        """The places of the head's labels (percent), and the time since the beginning; none where steps are equal."""
        if self.steps:
            return []
        span_ms = max(1, self.end - self.begin)
        positions = range(1, _LABELS)
        return [
            (
                _LEFT + (_RIGHT - _LEFT) * each / (_LABELS - 1),
                f"+{span(span_ms * each // (_LABELS - 1) // 100 * 100)}",
            )
            for each in positions
        ]

    def _x(self, at: int, number: int) -> float:
        share = number / self.steps if self.steps else (at - self.begin) / max(1, self.end - self.begin)
        return round(_LEFT + (_RIGHT - _LEFT) * min(1.0, max(0.0, share)), 1)

    def _is_wide(self, left: float, right: float) -> bool:
        return right - left > 8  # noqa: PLR2004 - percent that a wait in words takes


async def search(visit: Visit) -> Page | Redirect:
    """A form for a message's id."""
    message_id = visit.parameter("id").strip()
    if message_id:
        return Redirect(visit.link("messages", message_id[:100]))
    values = {"form": visit.link("messages"), "rows": _latest(visit), "tail": visit.link("tail")}
    return Page("trace_start.html", values, live_seconds=5)


def _latest(visit: Visit) -> list[Mapping[str, Any]]:
    """The messages that this node knows something of, the latest first, each with its last line."""
    by_message: dict[str, Mapping[str, Any]] = {}
    for line in tail.in_scope(visit):
        if line.message_id and line.message_id not in by_message:
            by_message[line.message_id] = tail.row_of(visit, line)
        if len(by_message) == _LATEST_MAX:
            break
    return list(by_message.values())


async def one(visit: Visit) -> Page:
    """A publication: who still has to get it, who never will, and of whom nothing is left to tell."""
    scope = visit.scope
    message_id = visit.args["message"][:100]
    trace = await visit.engine.operations.trace(scope.account, scope.region, message_id)
    await _add_named(visit, trace, message_id)
    topics = _topics(visit, trace)
    axis = _axis(visit, trace)
    rows = [_row(visit, axis, each) for each in trace.deliveries]
    rows.sort(key=lambda row: list(_STATES).index(row["state"]))
    first = trace.deliveries[0].letter.delivery if trace.deliveries else None
    body = None if first is None else visit.body_of(first)
    here = ("messages", message_id)
    values = {
        "message_id": message_id,
        "rows": rows,
        "others": await _others(visit, topics, trace),
        "topics": [(topic.name, visit.link_in(topic, "topics", topic.name)) for topic in topics],
        "axis": axis,
        "axes": [
            (
                name,
                visit.link(*here, axis=key, **{name: visit.parameter(name) for name in _HINTS}),
                bool(axis.steps) == (key == "steps"),
            )
            for name, key in (("Time", "time"), ("Steps", "steps"))
        ],
        "first": first,
        "body": body,
        "pretty": None if body is None else json_text.pretty(body),
        "attributes": attributes_of(first.headers) if first is not None and visit.bodies_shown else [],
        "dead": sum(row["state"] == _DEAD for row in rows),
        "plan": next((row["plan"] for row in rows if row["plan"]), ""),
        "logs": [
            {"name": topic.name, **delivery_logs(visit, topic, f'"{message_id}"')} for topic in sorted(topics)
        ],
        "partial": trace.partial,
        "form": visit.link("messages"),
    }
    return Page("trace.html", values, live_seconds=5)


async def _add_named(visit: Visit, trace: Trace, message_id: str) -> None:
    """Add the delivery that a link from its row names, where it is further back in its queue than a trace looks."""
    name, seq = visit.parameter("in"), visit.number("seq")
    queue = await visit.engine.resources.queues.get(visit.scope._replace(name=name)) if name else None
    known = {each.letter.delivery.seq for each in trace.deliveries}
    if queue is None or seq in known:
        return
    for letter in await visit.engine.operations.dead_letters.look(LookRequest(queue.id, 1, seqs=[seq])):
        if message_id in (published_id(letter.delivery), id_text(letter.delivery.message_id)):
            trace.deliveries.append(TracedDelivery(queue, None, letter))


def _topics(visit: Visit, trace: Trace) -> set[ResourceName]:
    """The visitor's topics that it was published to, as far as a delivery of it stands or the link names one."""
    subscriptions = [each for each in map(_subscription, trace.deliveries) if each is not None]
    topics = {each.topic for each in subscriptions if visit.session.sees(each.topic.account)}
    if visit.parameter("topic"):
        topics.add(visit.scope._replace(name=visit.parameter("topic")))
    return topics


def _subscription(traced: TracedDelivery) -> Subscription | None:
    return traced.subscription or traced.letter.from_subscription


async def _others(visit: Visit, topics: set[ResourceName], trace: Trace) -> list[dict[str, Any]]:
    """The other subscriptions of its topics: what was delivered, or filtered out, is not in the store any more."""
    known = {each.key for each in map(_subscription, trace.deliveries) if each is not None}
    queues = {names.arn_of(each.queue.name) for each in trace.deliveries if each.queue is not None}
    subscriptions: list[Subscription] = []
    for topic in topics:
        subscriptions += await visit.engine.resources.subscriptions.of(topic, limit=SUBSCRIBERS_MAX)
    return [
        {
            "name": each.redacted_endpoint,
            "protocol": each.protocol,
            "link": visit.link_in(each.topic, "topics", each.topic.name, each.id),
            "fate": _fate(visit, each, trace),
        }
        for each in subscriptions
        if each.key not in known and each.endpoint not in queues
    ][:SUBSCRIBERS_MAX]


def _fate(visit: Visit, subscription: Subscription, trace: Trace) -> str:
    """The reason for which a subscription got nothing of the message; empty: it is not known."""
    if not subscription.confirmed:
        return "not confirmed: it gets nothing"
    first = trace.deliveries[0].letter.delivery if trace.deliveries else None
    body = None if first is None else visit.body_of(first)
    if first is None or body is None:
        return ""
    fate = fate_of(subscription, sent_attributes(first.headers), body)
    return fate if fate.startswith("filtered out") else ""


def _axis(visit: Visit, trace: Trace) -> Axis:
    """The axis from the first moment that is known of the message to the last, the next attempt included."""
    moments = [visit.now]
    longest = 1
    for traced in trace.deliveries:
        notes = traced.letter.notes
        moments += [traced.letter.delivery.sent_at, *(note.at for note in notes)]
        due = _due(visit, traced)
        if due:
            moments.append(due)
        longest = max(longest, len(notes) + bool(due))
    begin = min(moments)
    end = max([moment for moment in moments if moment != visit.now], default=visit.now)
    scale = visit.parameter("axis", "steps" if end - begin > STEPS_FROM_MS else "time")
    return Axis(begin, max(end, begin + 1), longest if scale == "steps" else 0)


def _due(visit: Visit, traced: TracedDelivery) -> int:
    """The moment of the next attempt (ms); 0: none is due."""
    delivery = traced.letter.delivery
    pushed = traced.subscription is not None and delivery.origin is None
    return delivery.available_at if pushed and delivery.available_at > visit.now else 0


def _row(visit: Visit, axis: Axis, traced: TracedDelivery) -> dict[str, Any]:
    """The row of a delivery: its state, its attempts on the axis, and links to it and to its receiver."""
    delivery, queue = traced.letter.delivery, traced.queue
    subscription = _subscription(traced)
    state = _DEAD if delivery.origin is not None else state_of(delivery, visit.now)
    colour, word = _STATES[state]
    link = plan = ""
    name, icon = "?", "queue"
    if subscription is not None:
        name, icon = subscription.redacted_endpoint, "endpoint"
        link = visit.link_in(subscription.topic, "topics", subscription.topic.name, subscription.id)
    elif traced.letter.from_queue is not None:
        name = traced.letter.from_queue.name
    elif queue is not None:
        name = queue.name.name
    row_link = link
    if queue is not None:
        page = "dead-letters" if state == _DEAD else "queues"
        parts = (str(delivery.seq),) if state == _DEAD else ("messages", str(delivery.seq))
        row_link = visit.link(page, queue.name.name, *parts)
        if state == _DEAD:
            plan = visit.link("dead-letters", queue.name.name, "plan", what="picked", id=delivery.seq)
    return {
        "state": state,
        "colour": colour,
        "word": word,
        "name": name,
        "icon": icon,
        "link": row_link or link,
        "topic": "" if subscription is None else subscription.topic.name,
        "dead_in": queue.name.name if queue is not None and state == _DEAD else "",
        "attempts": traced.letter.attempts,
        "next_at": _due(visit, traced),
        "discs": axis.discs(traced.letter.notes, _due(visit, traced)),
        "notes": traced.letter.notes,
        "plan": plan,
        "sent_at": delivery.sent_at,
    }
