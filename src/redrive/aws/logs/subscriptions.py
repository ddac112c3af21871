"""Subscription filters: log events that match a pattern are owed to a destination, as they are written down."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from redrive.aws.gateway.owed_calls import backlog_in
from redrive.aws.gateway.rounds import ROUNDS_MAX
from redrive.aws.kit.call import Call
from redrive.aws.logs import names
from redrive.aws.logs.destinations import LogBatch, LogDestination, destination_of
from redrive.aws.logs.errors import PAGES, invalid
from redrive.aws.logs.filter_pattern import read_pattern
from redrive.aws.logs.group_filters import GroupFilters, place_of
from redrive.aws.logs.places import LogPlaces, StreamNames
from redrive.aws.logs.records import (
    DIALECT,
    SUBSCRIBED,
    SUBSCRIPTION_FILTER,
    TO_DESTINATION,
    SubscriptionFilter,
)
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import TelemetryStore
from redrive.engine.resources import Draft
from redrive.model.log import EVENT_BYTES, LogEvent

logger = logging.getLogger(__name__)

FILTERS_MAX: Final = 2  # of a group
#: A function gets at most a mebibyte, in base64, and a delivery stream 1,024,000 bytes, of what may not compress at all.
_BYTES_MAX: Final = 700_000
_UNAVAILABLE: Final = ("applyOnTransformedLogs", "fieldSelectionCriteria", "emitSystemFields")
_ID_DIGITS: Final = 36


class SubscriptionFilters:
    """Puts, shows and removes subscription filters, and lets events pass through them."""

    def __init__(
        self,
        engine: Engine,
        store: TelemetryStore,
        places: LogPlaces,
        destinations: Mapping[str, LogDestination],  # by the service in their ARNs
    ) -> None:
        self._engine = engine
        self._store = store
        self._places = places
        self._destinations = destinations
        self.stored_filters: Final = GroupFilters(
            SUBSCRIPTION_FILTER, "subscription filter", FILTERS_MAX, places
        )

    # ---- operations --------------------------------------------------------------------------------------

    async def put_subscription_filter(self, call: Call, params: Structure) -> Structure:
        for parameter in _UNAVAILABLE:
            if params.get(parameter):
                raise invalid(f"{parameter} is not available.")
        read_pattern(params["filterPattern"])
        destination, role = params["destinationArn"], params.get("roleArn") or ""
        service = destination_of(destination, call.account, call.region, role)
        group = await self._places.stored_group(names.group_name(call, params["logGroupName"]))
        await self._destinations[service].check(call, group.name, destination, role)
        subscription_filter = SubscriptionFilter(
            group.name,
            group.id,
            params["filterName"],
            params["filterPattern"],
            call.now,
            destination,
            params.get("distribution") or "ByLogStream",
            role,
        )
        await self.stored_filters.put(subscription_filter)
        return {}

    async def describe_subscription_filters(self, call: Call, params: Structure) -> Structure:
        filters = sorted(await self.stored_filters.find(call, params), key=place_of)
        return PAGES.of("DescribeSubscriptionFilters", params, filters, _as_structure, place_of)

    async def delete_subscription_filter(self, call: Call, params: Structure) -> Structure:
        await self.stored_filters.remove(call, params)
        return {}

    async def describe_destinations(self, _: Call, params: Structure) -> Structure:
        """There are none: none can be put."""
        return PAGES.of("DescribeDestinations", params, (), dict)

    # ---- events ------------------------------------------------------------------------------------------

    async def write_down(self, events: Sequence[LogEvent], streams: StreamNames) -> None:
        """Write events down, and owe what matches in the same transaction: no crash comes between.

        Raises:
            StoreUnavailable: It is unknown whether it was done.
        """
        await self.stored_filters.follow()
        deliveries = [
            delivery
            for stream_id, of_stream in groupby(events, lambda event: event.stream_id)
            for delivery in await self._batches_for_filters(list(of_stream), streams[stream_id])
        ]
        if not deliveries:
            await self._store.add_events(events)
            return

        async def decide(draft: Draft) -> None:
            draft.log(events)
            for subscription_filter, log_batch in deliveries:
                account, region, _ = subscription_filter.group
                backlog = await backlog_in(
                    draft, self._engine, account, region, DIALECT, SUBSCRIBED, TO_DESTINATION
                )
                self._engine.messages.publish_alone_in(draft, *backlog, log_batch.pack(), headers=b"")

        await self._engine.resources.write(decide)

    async def _batches_for_filters(
        self, events: Sequence[LogEvent], stream: str
    ) -> list[tuple[SubscriptionFilter, LogBatch]]:
        """The batches that new events of a stream make, each with the filter that sends it."""
        deliveries = []
        for compiled_filter in self.stored_filters.of(events[0].group_id):
            subscription_filter = compiled_filter.filter
            matches = await compiled_filter.matches_of(events)
            for batch in _batches(_without_circles(subscription_filter, matches)):
                log_batch = LogBatch(
                    subscription_filter.group.name,
                    stream,
                    subscription_filter.name,
                    subscription_filter.destination,
                    [self._as_structure_of_event(event) for event in batch],
                    subscription_filter.role,
                    max(event.rounds for event in batch),
                )
                deliveries.append((subscription_filter, log_batch))
        return deliveries

    def _as_structure_of_event(self, event: LogEvent) -> Mapping[str, Any]:
        """An event as destinations get it; its id is the time and a random number."""
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


def _without_circles(
    subscription_filter: SubscriptionFilter, events: Sequence[LogEvent]
) -> Sequence[LogEvent]:
    """The events, but for those that functions wrote which invoke each other by their log groups: they end here."""
    remaining_events = [event for event in events if event.rounds < ROUNDS_MAX]
    if len(remaining_events) < len(events):
        logger.warning(
            "log_subscription.circle group=%s filter=%s destination=%s events=%d: %d runs of functions in a row were each"
            " begun by log events of the one before; choose patterns that do not match what they write",
            subscription_filter.group.key,
            subscription_filter.name,
            subscription_filter.destination,
            len(events) - len(remaining_events),
            ROUNDS_MAX,
        )
    return remaining_events


def _as_structure(each: SubscriptionFilter) -> Structure:
    return {
        "filterName": each.name,
        "logGroupName": each.group.name,
        "filterPattern": each.pattern,
        "destinationArn": each.destination,
        "roleArn": each.role or None,
        "distribution": each.distribution,
        "applyOnTransformedLogs": False,
        "creationTime": each.created_at,
    }
