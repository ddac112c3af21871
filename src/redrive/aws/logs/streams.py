"""Log streams: made, described, deleted."""

from collections.abc import Mapping, Sequence

from redrive.aws.kit.call import Call
from redrive.aws.logs import names
from redrive.aws.logs.errors import PAGES, invalid
from redrive.aws.logs.places import LogPlaces, Settle
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import NodeStore
from redrive.model.log import END_OF_TIME, LogGroup, LogSpan, LogStream

_EVENTS_PER_DROP = 1_000  # about 5 ms of the store's time


class LogStreamOperations:
    """Creates, finds and deletes streams."""

    def __init__(self, store: NodeStore, places: LogPlaces, settle: Settle) -> None:
        """Do it to these places of that store; see `Logs` for `settle`."""
        self._store = store
        self._places = places
        self._settle = settle

    async def create_log_stream(self, call: Call, params: Structure) -> Structure:
        name = names.group_name(call, params["logGroupName"])
        await self._places.add_stream(name, params["logStreamName"], await self._store.new_id(), call.now)
        return {}

    async def delete_log_stream(self, call: Call, params: Structure) -> Structure:
        group = await self._places.stored_group(names.group_name(call, params["logGroupName"]))
        stream = await self._places.stream(group, params["logStreamName"])
        while await self._store.drop_events(group.id, stream.id, END_OF_TIME, _EVENTS_PER_DROP):
            pass
        await self._places.remove_stream(stream)
        return {}

    async def describe_log_streams(self, call: Call, params: Structure) -> Structure:
        by_time = params.get("orderBy") == "LastEventTime"
        prefix: str = params.get("logStreamNamePrefix") or ""
        if by_time and prefix:
            raise invalid("Cannot order by LastEventTime with a logStreamNamePrefix.")
        await self._settle()
        group = await self._places.group(names.named_group(call, params))
        streams = await self._places.streams(group, prefix)
        descending = bool(params.get("descending"))
        spans = await self._spans(group, streams) if by_time else {}

        def order_key(stream: LogStream) -> str:
            return f"{_last_at(spans, stream):020}/{stream.name}"

        ordered = sorted(streams, key=order_key, reverse=descending)
        page, answer = PAGES.cut("DescribeLogStreams", params, ordered, order_key, descending=descending)
        spans = spans or await self._spans(group, page)
        return {
            "logStreams": [_as_structure(group, stream, spans.get(stream.id)) for stream in page],
            **answer,
        }

    async def _spans(self, group: LogGroup, streams: Sequence[LogStream]) -> Mapping[int, LogSpan]:
        return await self._store.log_spans(group.id, [stream.id for stream in streams])


def _last_at(spans: Mapping[int, LogSpan], stream: LogStream) -> int:
    span = spans.get(stream.id)
    return 0 if span is None else span.last_at


def _as_structure(group: LogGroup, stream: LogStream, span: LogSpan | None) -> Structure:
    first_at, last_at, ingested_at = span or (None, None, None)
    return {
        "logStreamName": stream.name,
        "creationTime": stream.created_at,
        "firstEventTimestamp": first_at,
        "lastEventTimestamp": last_at,
        "lastIngestionTime": ingested_at,
        "arn": names.stream_arn(group, stream),
        "storedBytes": 0,  # as CloudWatch Logs reports for every stream since June 2019
    }
