"""Undelivered messages that need attention: those that are lost, and dead letters with their main cause."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from redrive.access.keys import is_account
from redrive.aws.lambda_.documents.backlogs import DIALECT as LAMBDA
from redrive.console.arrivals import Burst, bursts
from redrive.console.charts import Curve, sparkline
from redrive.console.pages.dead_letters import cause_id, origin_text
from redrive.console.visit import Visit
from redrive.console.words import counted, failure_words, many, number, scope_text
from redrive.engine.operations import DeadLetterQueue
from redrive.engine.ports import CauseCount
from redrive.model.durations import HOUR_MS
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery, SeriesQuery
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue
from redrive.model.topic import Subscription
from redrive.telemetry.accumulators import LOST, Loss

NEEDS_MAX: Final = 50  # of each kind
COUNTED_MAX: Final = 100_000  # of each dead-letter queue: 8 ms
BURSTS_MAX: Final = 10  # of the fullest: 14,000 rows are read where something died in each minute of the day
CAUSES_OF_MAX: Final = 2  # dead-letter queues, the fullest, whose main cause is named: a read each
#: The deliveries of private topics, by their kinds; others are publications straight to phones and devices.
_KIND_WORDS: Final = {
    "lambda": "function event",
    "alarms": "alarm action",
    "logs": "log delivery",
    "s3": "bucket notification",
    "cloudformation": "stack notification",
}
_NO_REMEDY: Final = "no dead-letter queue has them"
LOSSES_MAX: Final = 500  # causes of losses in a day, of all accounts


@dataclass(frozen=True, slots=True)
class Need:
    """Something that needs attention."""

    kind: str  # `lost`, `dead`, `alarm`, `failing`, `hold`, `unattended`, `function`, `stack` or `redrive`
    badge: str  # Its state in words
    colour: str  # Colour of the badge
    title: str  # Problem, with numbers
    detail: str  # The cause, in one line
    link: str  # The page of what it is about
    action: str  # The words on its button
    scope: str  # Account and region
    acts: str = ""  # Where the button leads: a plan or a form; empty: the page itself
    since: int = 0  # When it began (ms); 0: not known
    # Of the form that does it at once, sent to `acts`; empty: the button is a link.
    fields: Mapping[str, str] = field(default_factory=dict)
    trend: Curve | None = None  # Of the last hour, or of the latest burst; None: there is none


def is_in(name: ResourceName, scopes: Collection[ResourceName]) -> bool:
    """True for a thing of one of these accounts and regions."""
    return name._replace(name="") in scopes


#: The messages lost in each hour of the last day, by cause.
Losses = Mapping[Loss, Sequence[int]]


async def last_day(
    visit: Visit, scopes: Collection[ResourceName], dead: Sequence[DeadLetterQueue]
) -> tuple[Losses, Mapping[int, Burst]]:
    """The losses of the last day, and the latest bursts of the fullest dead-letter queues."""
    telemetry, since = visit.installation.telemetry, visit.now - DAY_MS
    query = SeriesQuery("", "", LOSSES_MAX, namespace=LOST, active_since=since)
    all_losses = [Loss.of_series(series) for series in await telemetry.find_series(query)]
    losses = {loss: loss.series for loss in all_losses if is_in(loss.of, scopes)}
    fullest = sorted((each for each in dead if each.number), key=lambda each: -each.number)[:BURSTS_MAX]
    minute = visit.now // MINUTE_MS * MINUTE_MS
    points = {}
    if losses:
        span = PointQuery(list(losses.values()), minute - DAY_MS, minute + MINUTE_MS, HOUR_MS)
        points = dict(await telemetry.find_points_each(span))
    latest = await bursts(telemetry, [each.queue for each in fullest], visit.now)
    hours = {loss: _hours(points.get(series.id, ()), minute - DAY_MS) for loss, series in losses.items()}
    return {loss: each for loss, each in hours.items() if any(each)}, latest


def _hours(buckets: Iterable[PeriodStatistics], since: int) -> list[int]:
    """The sums of the hours of a day that began then (ms), the minute that is under way among them."""
    hours = [0] * (DAY_MS // HOUR_MS + 1)
    for bucket in buckets:
        hours[(bucket.at - since) // HOUR_MS] += int(bucket.statistics.total)
    return hours


async def lost_needs(visit: Visit, losses: Losses) -> list[Need]:
    """A row for each subscription or queue that lost messages, by its most frequent cause."""
    of_each: dict[tuple[ResourceName, str], dict[str, Sequence[int]]] = {}
    for loss, hours in losses.items():
        of_each.setdefault((loss.of, loss.subscription), {})[loss.reason] = hours
    totals = {
        key: [sum(hour) for hour in zip(*causes.values(), strict=True)] for key, causes in of_each.items()
    }
    ranked = sorted(of_each, key=lambda key: -sum(totals[key]))[:NEEDS_MAX]
    rows = []
    for name, subscription in ranked:
        causes, hours = of_each[name, subscription], totals[name, subscription]
        main_cause = max(causes, key=lambda cause: (sum(causes[cause]), cause))
        reason = "Function error" if subscription == LAMBDA else failure_words(main_cause)
        need = await _loss(visit, name, subscription, sum(hours), reason)
        summary = f"Lost in each of the last 24 hours: {number(max(hours))} at most"
        rows.append(replace(need, trend=sparkline(hours, summary)))
    return rows


async def _loss(visit: Visit, name: ResourceName, subscription: str, total: int, reason: str) -> Need:
    """The row, whose button leads to a form for a dead-letter queue where there is none yet."""
    what = f"{many(total, 'message')} of {name.name}"
    if not name.name:
        what = many(total, _KIND_WORDS.get(subscription, "direct publication"), "")
    source = await _loser(visit, name, subscription)
    dead_letter_queue = _dead_letters_of(source)
    endpoint_prefix = f"{source.redacted_endpoint}: " if isinstance(source, Subscription) else ""
    remedy = f"dead letters go to {dead_letter_queue.name} now" if dead_letter_queue else _NO_REMEDY
    link = _loss_link(visit, name, subscription, source)
    action, acts = "Open", ""
    if source and not dead_letter_queue and is_account(name.account) and visit.session.writes:
        of_topic = {"topic": name.name, "subscription": subscription}
        source_key = of_topic if subscription else {"queue": name.name}
        action, acts = "Add dead-letter queue…", visit.link_in(name, "dead-letter-queue", **source_key)
    return Need(
        kind="lost",
        badge="Lost",
        colour="bad",
        title=f"{number(total)} {what} {many(total, 'was', 'were')} lost",
        detail=f"{endpoint_prefix}{reason}; {remedy} · last 24 hours",
        link=link,
        action=action,
        acts=acts,
        scope=scope_text(name),
    )


async def _loser(visit: Visit, name: ResourceName, subscription: str) -> Subscription | Queue | None:
    """The subscription or queue that lost something, if it still exists."""
    resources = visit.engine.resources
    if subscription:
        return await resources.subscriptions.get(name, subscription) if name.name else None
    return await resources.queues.get(name)


def _dead_letters_of(source: Subscription | Queue | None) -> ResourceName | None:
    """The queue that keeps the dead letters of something; None: none does."""
    if isinstance(source, Queue):
        return source.dead_letter.queue if source.dead_letter else None
    return None if source is None else source.dead_letter


def _loss_link(
    visit: Visit, name: ResourceName, subscription: str, source: Subscription | Queue | None
) -> str:
    """The page of what lost messages: a queue, a topic's subscription, or deliveries of one kind; see `Loss`."""
    if not subscription:
        return visit.link_in(name, "queues", name.name)
    if not name.name:
        return visit.link_in(name, "functions" if subscription == LAMBDA else "tail")
    if source is None:
        return visit.link_in(name, "topics", name.name)
    return visit.link_in(name, "topics", name.name, subscription)


async def dead_letter_needs(
    visit: Visit, queues: Sequence[DeadLetterQueue], latest: Mapping[int, Burst]
) -> list[Need]:
    """The dead-letter queues that are not empty, the fullest first, with the main cause of the first ones."""
    full = sorted((queue for queue in queues if queue.number), key=lambda queue: -queue.number)
    rows = []
    for index, each in enumerate(full[:NEEDS_MAX]):
        cause = await _main_cause(visit, each.queue) if index < CAUSES_OF_MAX else None
        rows.append(await _dead_letters(visit, each, latest.get(each.queue.id), cause))
    return rows


async def _main_cause(visit: Visit, queue: Queue) -> CauseCount | None:
    groups = await visit.engine.operations.dead_letters.cause_counts(queue, 50, COUNTED_MAX)
    return groups[0] if groups else None


async def _dead_letters(
    visit: Visit, dead: DeadLetterQueue, burst: Burst | None, cause: CauseCount | None
) -> Need:
    """The row of a dead-letter queue; its button leads to a redrive of its main cause, or of everything."""
    name = dead.queue.name
    link = visit.link_in(name, "dead-letters", name.name)
    letters = counted(dead.number, dead.at_most or COUNTED_MAX)
    title = f"{letters} dead {many(dead.number, 'letter')} in {name.name}"
    detail, action, acts = "No reason is known", f"Redrive {letters}…", f"{link}/plan?what=all&cause=all"
    if cause is not None:
        origin = origin_text(*await visit.engine.operations.dead_letters.origin(cause.cause.origin))
        many_of_it = f"{number(cause.number)}{'+' if cause.capped else ''}"
        detail = f"{many_of_it} {failure_words(cause.cause.failure)} from {origin}"
        action = f"Redrive {many_of_it}…"
        acts = visit.link_in(name, "dead-letters", name.name, "plan", what="all", cause=cause_id(cause.cause))
    elif dead.from_queues or dead.from_subscriptions:
        sources = len(dead.from_queues) + len(dead.from_subscriptions)
        detail = f"From {sources} {many(sources, 'source')}"
    if burst is not None:
        detail += f" · {number(burst.letters)} in the latest burst"
    return Need(
        "dead",
        "Dead letters",
        "bad",
        title,
        detail,
        link,
        action=action,
        acts=acts,
        scope=scope_text(name),
        since=burst.since if burst else 0,
        trend=burst.curve if burst else None,
    )
