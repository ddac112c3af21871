"""Subscription filters: log events that match a pattern are owed to a function, as they are written down."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft
from redrive.model.errors import StoreUnavailable
from redrive.model.log import EVENT_BYTES, LogEvent
from redrive.protocols.aws.call import Call
from redrive.protocols.aws.logs import names
from redrive.protocols.aws.logs.errors import invalid
from redrive.protocols.aws.logs.filter_pattern import read_pattern
from redrive.protocols.aws.logs.group_filters import DESCRIBED_MAX, GroupFilter, GroupFilters
from redrive.protocols.aws.logs.paging import Page
from redrive.protocols.aws.logs.places import Places, StreamNames
from redrive.protocols.aws.logs.subscribed import (
    DIALECT,
    SUBSCRIBED,
    TO_FUNCTION,
    Forwarded,
    FunctionCalls,
)
from redrive.protocols.aws.owed_calls import backlog_in
from redrive.protocols.aws.wire.arn import parse_arn
from redrive.protocols.aws.wire.shapes import Structure

logger = logging.getLogger(__name__)

FILTERS_MAX: Final = 2  # of a group
#: A function gets at most a mebibyte, in base64, of what may not compress at all.
_BYTES_MAX: Final = 700_000
#: Events that a store which is away has not taken yet, a few megabytes; what is beyond is lost.
_WAITING_MAX: Final = 10_000
_UNAVAILABLE: Final = ("applyOnTransformedLogs", "fieldSelectionCriteria", "emitSystemFields")
_ID_DIGITS: Final = 36


@dataclass(frozen=True, slots=True)
class SubscriptionFilter(GroupFilter):
    """One subscription filter.

    Attributes:
        destination: The function's ARN.
        distribution: As it was put; it decides nothing for a function.
    """

    destination: str
    distribution: str


SUBSCRIPTION_FILTER: Final[DocumentKind[SubscriptionFilter]] = DocumentKind(
    "log_subscription_filter", SubscriptionFilter.to_document, SubscriptionFilter.from_document
)


class SubscriptionFilters:
    """Puts, shows and removes subscription filters, and lets events pass through them."""

    def __init__(self, engine: Engine, places: Places, functions: FunctionCalls) -> None:
        """Owe events by this engine.

        Args:
            engine: What delivers them.
            places: The groups.
            functions: Where they go.
        """
        self._engine = engine
        self._places = places
        self._functions = functions
        self._waiting: list[tuple[Sequence[LogEvent], StreamNames]] = []
        self.kept: Final = GroupFilters(SUBSCRIPTION_FILTER, "subscription filter", FILTERS_MAX, places)

    # ---- operations --------------------------------------------------------------------------------------

    async def put_subscription_filter(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutSubscriptionFilter.html."""
        for parameter in _UNAVAILABLE:
            if params.get(parameter):
                raise invalid(f"{parameter} is not available.")
        read_pattern(params["filterPattern"])
        destination = params["destinationArn"]
        _check_destination(call, destination)
        if params.get("roleArn"):
            raise invalid("destinationArn for vendor lambda cannot be used with roleArn")
        group = await self._places.group(names.group_name(call, params["logGroupName"]))
        await self._functions.check(group.name, destination)
        made = SubscriptionFilter(
            group.name,
            group.id,
            params["filterName"],
            params["filterPattern"],
            call.now,
            destination,
            params.get("distribution") or "ByLogStream",
        )
        await self.kept.put(made)
        return {}

    async def describe_subscription_filters(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DescribeSubscriptionFilters.html."""
        found = await self.kept.find(call, params)
        shown, answer = Page.of(params, DESCRIBED_MAX).cut(found, lambda each: (each.group_id, each.name))
        return answer | {"subscriptionFilters": [_shown(each) for each in shown]}

    async def delete_subscription_filter(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DeleteSubscriptionFilter.html."""
        await self.kept.remove(call, params)
        return {}

    # ---- events ------------------------------------------------------------------------------------------

    async def pass_through(self, events: Sequence[LogEvent], streams: StreamNames) -> None:
        """Owe events that were written down; what a store that is away does not take goes with the next events."""
        waiting, self._waiting = [*self._waiting, (events, streams)], []
        while waiting:
            try:
                await self.kept.follow()
                await self._owe(*waiting[0])
            except StoreUnavailable as away:
                self._wait(waiting, away)
                return
            del waiting[0]

    def _wait(self, waiting: list[tuple[Sequence[LogEvent], StreamNames]], away: StoreUnavailable) -> None:
        self._waiting = [*waiting, *self._waiting]
        while len(self._waiting) > 1 and sum(len(events) for events, _ in self._waiting) > _WAITING_MAX:
            lost, _ = self._waiting.pop(0)
            logger.warning("log_subscription.events_lost events=%d error=%s", len(lost), away)

    async def _owe(self, events: Sequence[LogEvent], streams: StreamNames) -> None:
        owed = [
            (kept, forwarded)
            for stream_id, of_stream in groupby(events, lambda event: event.stream_id)
            for kept, forwarded in self._forwarded(list(of_stream), streams[stream_id])
        ]
        if not owed:
            return

        async def decide(draft: Draft) -> None:
            for kept, forwarded in owed:
                account, region, _ = kept.group
                backlog = await backlog_in(
                    draft, self._engine, account, region, DIALECT, SUBSCRIBED, TO_FUNCTION
                )
                self._engine.messages.publish_alone_in(draft, *backlog, forwarded.pack(), b"")

        await self._engine.resources.write(decide)

    def _forwarded(
        self, events: Sequence[LogEvent], stream: str
    ) -> Iterator[tuple[SubscriptionFilter, Forwarded]]:
        for compiled in self.kept.of(events[0].group_id):
            kept = compiled.filter
            matching = [event for event in events if compiled.pattern.matches(event.message)]
            for batch in _batches(matching):
                told = [self._told(event) for event in batch]
                yield kept, Forwarded(kept.group.name, stream, kept.name, kept.destination, told)

    def _told(self, event: LogEvent) -> Mapping[str, Any]:
        number = int.from_bytes(self._engine.runtime.message_id()) % 10**_ID_DIGITS
        return {
            "id": f"{event.at:020d}{number:0{_ID_DIGITS}d}",
            "timestamp": event.at,
            "message": event.message,
        }


def _batches(events: Sequence[LogEvent]) -> Iterator[Sequence[LogEvent]]:
    """The events, in parts that a function takes."""
    batch: list[LogEvent] = []
    room = _BYTES_MAX
    for event in events:
        size = len(event.message.encode()) + EVENT_BYTES
        if batch and size > room:
            yield batch
            batch, room = [], _BYTES_MAX
        batch.append(event)
        room -= size
    if batch:
        yield batch


def _check_destination(call: Call, destination: str) -> None:
    try:
        parsed = parse_arn(destination)
    except ValueError:
        raise invalid(f"Invalid ARN: {destination}") from None
    if parsed.service != "lambda":
        raise invalid(f"Destinations of {parsed.service} are not available, functions alone are.")
    if (parsed.region, parsed.account) != (call.region, call.account):
        raise invalid("destinationArn must be a function of the log group's account and region.")


def _shown(each: SubscriptionFilter) -> Structure:
    return {
        "filterName": each.name,
        "logGroupName": each.group.name,
        "filterPattern": each.pattern,
        "destinationArn": each.destination,
        "distribution": each.distribution,
        "applyOnTransformedLogs": False,
        "creationTime": each.created_at,
    }
