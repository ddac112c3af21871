"""StartQuery and its kin: a query is carried out when it is started, and its results are kept for a while."""

import functools
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import offload
from redrive.aws.logs import names
from redrive.aws.logs.errors import PAGES, error, invalid
from redrive.aws.logs.insights import Query, Rows, read_query
from redrive.aws.logs.insights_values import STEPS_MAX, Fields, Value
from redrive.aws.logs.places import GROUP, LogPlaces, Settle
from redrive.aws.logs.records import QUERY, StoredQuery
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Removal, Runtime, TelemetryStore
from redrive.model.budget import CHARS_PER_STEP, Budget, OverBudgetError
from redrive.model.log import EVENT_BYTES, LogEvent, LogGroup, LogQuery
from redrive.model.names import ResourceName, id_text

EVENTS_MAX: Final = 50_000  # that one query looks at: about a second of processor time
SCANNED_BYTES_MAX: Final = 64 * 1024 * 1024
RESULTS_BYTES_MAX: Final = 1_000_000
KEPT: Final = 50  # queries of an account's region
_EVENTS_PER_PAGE: Final = 500
_LANGUAGE: Final = "CWLI"
_GROUPS_MAX: Final = 50
_MEMBERS_MAX: Final = 1_000
_DEPTH_MAX: Final = 10
_COMPLETE: Final = "Complete"


class Querying:
    """Carries queries out."""

    def __init__(self, store: TelemetryStore, places: LogPlaces, settle: Settle, runtime: Runtime) -> None:
        self._store = store
        self._places = places
        self._settle = settle
        self._runtime = runtime

    async def start_query(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_StartQuery.html.

        It has been carried out when this is answered.
        """
        if params.get("queryLanguage") not in (None, _LANGUAGE):
            raise invalid(f"queryLanguage {_LANGUAGE} is the only one available.")
        if params["startTime"] > params["endTime"]:
            raise invalid("End time should not be before the start time.")
        query = read_query(params["queryString"])
        groups = [await self._group(call, name) for name in _groups(call, params)]
        await self._settle()
        rows, statistics = await self._rows(call, query, groups, params)
        try:
            results = await offload(
                call.account, lambda: _within_size(query.results(rows, params.get("limit")))
            )
        except OverBudgetError:
            text = (
                "The query takes too many steps for so many events. Ask for a shorter time, or fewer terms."
            )
            raise error("LimitExceededException", text) from None
        stored_query = StoredQuery(
            id_text(self._runtime.message_id()),
            _rewritten(params, groups),
            [group.name.name for group in groups],
            call.now,
            results,
            {**statistics, "recordsMatched": float(len(rows)), "resultCount": float(len(results))},
        )
        await self._keep(call, stored_query)
        return {"queryId": stored_query.id}

    async def _group(self, call: Call, name: ResourceName) -> LogGroup:
        """A group that a query names; the refusal of one that does not exist has words of its own (recorded)."""
        group = await self._places.documents.get(GROUP, name.key)
        if group is None:
            raise error(
                "ResourceNotFoundException",
                f"Log group '{name.name}' does not exist for account ID '{name.account}' (Service: AWSLogs; Status Code:"
                f" 400; Error Code: ResourceNotFoundException; Request ID: {call.id}; Proxy: null)",
            )
        return group

    async def get_query_results(self, call: Call, params: Structure) -> Structure:
        query = await self._query(call, params["queryId"])
        return {
            "queryLanguage": _LANGUAGE,
            "results": query.results,
            "statistics": dict(query.statistics),
            "status": _COMPLETE,
        }

    async def stop_query(self, call: Call, params: Structure) -> Structure:
        await self._query(call, params["queryId"])
        raise invalid(f"Query {params['queryId']} has already ended")

    async def describe_queries(self, call: Call, params: Structure) -> Structure:
        queries = [
            query
            for query in (await self._queries(call))[::-1]
            if params.get("logGroupName") in (None, *query.groups)
            and params.get("status") in (None, _COMPLETE)
        ]
        return PAGES.of("DescribeQueries", params, queries, _describe)

    # ---- kept --------------------------------------------------------------------------------------------

    async def _keep(self, call: Call, stored_query: StoredQuery) -> None:
        documents = self._places.documents
        await documents.create(QUERY, _key(call, stored_query), stored_query)
        if old := (await self._queries(call))[:-KEPT]:
            await documents.write([Removal(QUERY, _key(call, query)) for query in old])

    async def _queries(self, call: Call) -> list[StoredQuery]:
        return await self._places.documents.find(QUERY, f"{call.account}/{call.region}/")

    async def _query(self, call: Call, query_id: str) -> StoredQuery:
        for query in await self._queries(call):
            if query.id == query_id:
                return query
        raise error("ResourceNotFoundException", f"Query {query_id} does not exist")

    # ---- events ------------------------------------------------------------------------------------------

    async def _rows(
        self, call: Call, query: Query, groups: Sequence[LogGroup], params: Structure
    ) -> tuple[Rows, dict[str, float]]:
        """The rows of the events that each command lets through by itself, and the statistics of their reading."""
        scan = _Scan(query)
        examined = size = 0
        for group in groups:
            streams = {stream.id: stream.name for stream in await self._places.streams(group, "")}
            log_query = LogQuery(
                group.id,
                _EVENTS_PER_PAGE,
                since=params["startTime"] * 1000,
                until=params["endTime"] * 1000 + 1000,
                backwards=True,
            )
            while (
                examined < EVENTS_MAX
                and size < SCANNED_BYTES_MAX
                and not scan.is_over
                and (page := await self._store.find_events(log_query))
            ):
                examined += len(page)
                size += sum(len(event.message) + EVENT_BYTES for event in page)
                await offload(call.account, functools.partial(scan.take, group, streams, page))
                log_query = replace(log_query, after=page[-1].position)
        scan.budget.left = STEPS_MAX  # the rows share it: to sort and group them has as much again
        return scan.rows, {
            "recordsScanned": float(examined),
            "bytesScanned": float(size),
            "logGroupsScanned": float(len(groups)),
        }


class _Scan:
    """Events as a query sees them, one after the other, until its steps are spent.

    Attributes:
        rows: Those that were let through.
        budget: What the query may still do.
        is_over: No event is looked at any more.
    """

    def __init__(self, query: Query) -> None:
        self._query = query
        self.rows: Rows = []
        self.budget = Budget(STEPS_MAX)
        self.is_over = False

    def take(self, group: LogGroup, streams: Mapping[int, str], page: Sequence[LogEvent]) -> None:
        """Add rows for those events of a page that match; `is_over`, if that takes more than the budget has."""
        try:
            for event in page:
                self.budget.spend(self._query.weight * (1 + len(event.message) // CHARS_PER_STEP))
                row = Fields(_row(group, streams, event, self._query.names), self.budget)
                self.rows += self._query.narrow([row])
        except OverBudgetError:
            self.is_over = True


def _key(call: Call, query: StoredQuery) -> str:
    return f"{call.account}/{call.region}/{query.created_at:015d}/{query.id}"


def _groups(call: Call, params: Structure) -> list[Any]:
    """The names of the groups that a query looks at."""
    group_name, group_names, ids = (
        params.get(name) for name in ("logGroupName", "logGroupNames", "logGroupIdentifiers")
    )
    if sum(bool(parameter) for parameter in (group_name, group_names, ids)) != 1:
        raise invalid("Exactly one of logGroupName, logGroupNames and logGroupIdentifiers must be specified.")
    if ids:
        groups = [names.named_group(call, {"logGroupIdentifier": id_.removesuffix(":*")}) for id_ in ids]
    else:
        groups = [names.group_name(call, name) for name in group_names or [group_name]]
    if len(groups) > _GROUPS_MAX:
        raise invalid(f"A query looks at {_GROUPS_MAX} log groups at most.")
    return list(dict.fromkeys(groups))


def _row(
    group: LogGroup, streams: Mapping[int, str], event: LogEvent, names: Container[str]
) -> dict[str, Value]:
    """An event's fields: its own, and those of a message that is JSON and are named, `a.b` for inner ones."""
    return {
        **{name: value for name, value in _members(event.message).items() if name in names},
        "@timestamp": float(event.at),
        "@ingestionTime": float(event.ingested_at),
        "@message": event.message,
        "@logStream": streams.get(event.stream_id),
        "@log": f"{group.name.account}:{group.name.name}",
        "@ptr": f"{event.group_id:020d}{event.at:020d}{event.seq:020d}",
    }


def _members(message: str) -> dict[str, Value]:
    """The values of a message that is a JSON object, by their paths as `a.b.0`; empty for others."""
    if not message.lstrip().startswith("{"):
        return {}
    try:
        document = orjson.loads(message)
    except orjson.JSONDecodeError:
        return {}
    members: dict[str, Value] = {}
    _gather("", document, members, 0)
    return members


def _gather(prefix: str, value: Any, fields: dict[str, Value], depth: int) -> None:
    """Add the values within a value, which has the path `prefix`, to the fields, as far as the bounds allow."""
    if len(fields) >= _MEMBERS_MAX or depth > _DEPTH_MAX:
        return
    if isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in members:
            _gather(f"{prefix}.{name}" if prefix else str(name), inner, fields, depth + 1)
    else:
        fields[prefix] = float(value) if type(value) is int else value


def _within_size(results: Iterable[Any]) -> list[Any]:
    """The first results, as far as they fit into what is kept of a query."""
    rows: list[Any] = []
    size = 0
    for row in results:
        size += sum(len(field["field"]) + len(field["value"]) for field in row)
        if size > RESULTS_BYTES_MAX:
            break
        rows.append(row)
    return rows


def _rewritten(params: Structure, groups: Sequence[LogGroup]) -> str:
    """A query as lists show it: with the groups and the span that it looks at (recorded of one group)."""
    sources = ", ".join(f'"{group.name.name}"' for group in groups)
    span = f"START={params['startTime']}000 END={params['endTime']}999"
    return f"SOURCE {sources} {span} | {params['queryString']}"


def _describe(query: StoredQuery) -> Structure:
    return {
        "queryLanguage": _LANGUAGE,
        "queryId": query.id,
        "queryString": query.text,
        "status": _COMPLETE,
        "createTime": query.created_at,
        "logGroupName": query.groups[0],
    }
