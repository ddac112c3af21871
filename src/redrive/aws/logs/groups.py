"""Log groups: made, described, kept for so long, tagged, deleted; and their streams."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.logs import names
from redrive.aws.logs.errors import PAGES, error, invalid, no_such_group
from redrive.aws.logs.group_filters import GroupFilters
from redrive.aws.logs.places import GROUP, LogPlaces, Settle
from redrive.aws.logs.records import MetricFilter, SubscriptionFilter
from redrive.aws.logs.service import violated
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.violations import Violation, ViolationKind
from redrive.engine.ports import NodeStore
from redrive.model.errors import NotFound
from redrive.model.log import END_OF_TIME, LogGroup, LogSpan, LogStream
from redrive.model.names import ResourceName

_TAGS: Final = Tagging(
    too_many=lambda: error("TooManyTagsException", "A resource can have at most 50 tags."),
    pair=(),
    tags_parameter="tags",
    keys="tagKeys",
    listed="tags",
)
_OLD_TAGS: Final = replace(
    _TAGS, add="TagLogGroup", remove="UntagLogGroup", list="ListTagsLogGroup", keys="tags"
)
_CLASS: Final = "STANDARD"
_NOT_LISTED_BY: Final = (
    "accountIdentifiers",
    "includeLinkedAccounts",
    "dataSources",
    "fieldIndexNames",
    "logGroupTags",
)
RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
_EVENTS_PER_DROP = 1_000  # about 5 ms of the store's time


class LogGroupOperations:
    """Creates, finds, labels and deletes groups."""

    def __init__(
        self,
        store: NodeStore,
        places: LogPlaces,
        settle: Settle,
        filters: GroupFilters[MetricFilter],
        subscriptions: GroupFilters[SubscriptionFilter],
    ) -> None:
        self._filters = filters
        self._subscriptions = subscriptions
        self._store = store
        self._places = places
        self._settle = settle

    @property
    def tagging(self) -> Mapping[str, Verb]:
        """The operations on tags: those that name a group, and those that name its ARN."""
        return _OLD_TAGS.operations(self) | _TAGS.operations(self)

    async def create_log_group(self, call: Call, params: Structure) -> Structure:
        _check_plain(params)
        name = names.group_name(call, params["logGroupName"])
        number = await self._store.new_id()
        await self._places.add_group(LogGroup(number, name, call.now, tags=params.get("tags") or {}))
        return {}

    async def delete_log_group(self, call: Call, params: Structure) -> Structure:
        group = await self._places.stored_group(names.group_name(call, params["logGroupName"]))
        await self._places.remove_group(group)
        await self._filters.remove_of(group)
        await self._subscriptions.remove_of(group)
        return {}

    async def describe_log_groups(self, call: Call, params: Structure) -> Structure:
        prefix, pattern = params.get("logGroupNamePrefix"), params.get("logGroupNamePattern")
        if prefix and pattern:
            raise invalid("LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters.")
        await self._settle()
        beginning = names.group_name(call, prefix or "")
        groups = await self._places.documents.find(GROUP, beginning.key)
        matches = [group for group in groups if (pattern or "").lower() in group.name.name.lower()]
        page, answer = PAGES.cut("DescribeLogGroups", params, matches, lambda group: group.name.name)
        sizes = await self._store.log_bytes()
        filters = await self._filters.count()
        answer["logGroups"] = [
            _as_structure(group, sizes.get(group.id, 0), filters.get(group.id, 0)) for group in page
        ]
        if pattern:  # then the answer leaves out what is counted, and whether it is the last (recorded)
            for summary in answer["logGroups"]:
                summary.pop("storedBytes", None)
                summary.pop("deletionProtectionEnabled", None)
            answer |= PAGES.ending("DescribeLogGroups", page[-1].name.name) if page else {}
        return answer

    async def list_log_groups(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_ListLogGroups.html: names alone."""
        for parameter in _NOT_LISTED_BY:
            if params.get(parameter):
                raise invalid(f"{parameter} is not available.")
        await self._settle()
        groups = await self._places.documents.find(GROUP, names.group_name(call, "").key)
        # The model allows only letters of names, and `^`, `|` and `.`.
        pattern = re.compile(params.get("logGroupNamePattern") or "")
        matches = [
            group
            for group in groups
            if pattern.search(group.name.name) and params.get("logGroupClass") in (None, _CLASS)
        ]
        # It has no published paginator, and the members of another list's.
        page, answer = PAGES.cut("DescribeLogGroups", params, matches, lambda group: group.name.name)
        answer["logGroups"] = [
            {
                "logGroupName": group.name.name,
                "logGroupArn": names.arn_of(group.name),
                "logGroupClass": _CLASS,
            }
            for group in page
        ]
        return answer

    async def put_retention_policy(self, call: Call, params: Structure) -> Structure:
        days: int = params["retentionInDays"]
        if days not in RETENTION_DAYS:
            permitted = tuple(map(str, RETENTION_DAYS))
            raise violated([Violation("retentionInDays", ViolationKind.ENUM, days, permitted)])
        await self._change(call, params, lambda group: replace(group, retention_days=days))
        return {}

    async def delete_retention_policy(self, call: Call, params: Structure) -> Structure:
        await self._change(call, params, lambda group: replace(group, retention_days=None))
        return {}

    # ---- tags --------------------------------------------------------------------------------------------

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the log group that a request names; raises AwsError if there is none."""
        return (await self._places.group(_tagged_group_name(request.call, request.params))).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the log group that a request names; raises AwsError if there is none."""
        await self._update(
            _tagged_group_name(request.call, request.params),
            lambda group: replace(group, tags=change(group.tags)),
        )

    # ---- inside ------------------------------------------------------------------------------------------

    async def _group(self, call: Call, params: Structure) -> LogGroup:
        return await self._places.group(names.group_name(call, params["logGroupName"]))

    async def _change(self, call: Call, params: Structure, change: Callable[[LogGroup], LogGroup]) -> None:
        await self._update(names.group_name(call, params["logGroupName"]), change)

    async def _update(self, name: ResourceName, change: Callable[[LogGroup], LogGroup]) -> None:
        try:
            await self._places.documents.update(GROUP, name.key, change)
        except NotFound:
            raise no_such_group() from None


def _tagged_group_name(call: Call, params: Structure) -> ResourceName:
    if arn := params.get("resourceArn"):
        return names.name_in_arn(call, arn)
    return names.group_name(call, params["logGroupName"])


def _check_plain(params: Structure) -> None:
    """Refuse what Redrive's groups cannot be; silence would let the caller assume that they were."""
    for parameter in ("kmsKeyId", "deletionProtectionEnabled"):
        if params.get(parameter):
            raise invalid(f"{parameter} is not available.")
    if params.get("logGroupClass") not in (None, _CLASS):
        raise invalid(f"logGroupClass {_CLASS} is the only one available.")


def _as_structure(group: LogGroup, stored_bytes: int, filters: int) -> Structure:
    arn = names.arn_of(group.name)
    return {
        "logGroupName": group.name.name,
        "creationTime": group.created_at,
        "retentionInDays": group.retention_days,
        "metricFilterCount": filters,
        "arn": f"{arn}:*",
        "storedBytes": stored_bytes,
        "logGroupClass": _CLASS,
        "logGroupArn": arn,
        "deletionProtectionEnabled": False,
    }


class LogStreamOperations:
    """Creates, finds and deletes streams."""

    def __init__(self, store: NodeStore, places: LogPlaces, settle: Settle) -> None:
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

        sorted_streams = sorted(streams, key=order_key, reverse=descending)
        page, answer = PAGES.cut(
            "DescribeLogStreams", params, sorted_streams, order_key, descending=descending
        )
        spans = spans or await self._spans(group, page)
        return {
            "logStreams": [_stream_description(group, stream, spans.get(stream.id)) for stream in page],
            **answer,
        }

    async def _spans(self, group: LogGroup, streams: Sequence[LogStream]) -> Mapping[int, LogSpan]:
        return await self._store.log_spans(group.id, [stream.id for stream in streams])


def _last_at(spans: Mapping[int, LogSpan], stream: LogStream) -> int:
    span = spans.get(stream.id)
    return 0 if span is None else span.last_at


def _stream_description(group: LogGroup, stream: LogStream, span: LogSpan | None) -> Structure:
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
