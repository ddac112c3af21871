"""Lists of what a key holder may have without end: others are served while they are made; forged tokens of lists."""

import asyncio
from base64 import urlsafe_b64encode
from bisect import bisect_right
from hashlib import blake2s
from typing import Any, cast

import pytest

from redrive.access.principals import account_root
from redrive.aws.apigateway.control.errors import HTTP_PAGES, PAGES
from redrive.aws.cloudwatch.metrics.listing import PAGE_MAX, MetricListing
from redrive.aws.cloudwatch.metrics.queries import Queries as MetricQueries
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.engine.configuration.queues import Queues
from redrive.model.http import Request
from redrive.model.metric import Series, SeriesQuery
from redrive.model.names import ResourceName
from redrive.model.queue import DeadLetterTarget, Queue

ACCOUNT = "1" * 12
COUNT = 20_000


class ManySeries:
    """A store with series in order."""

    def __init__(self) -> None:
        self.series = [Series(ACCOUNT, "us-east-1", "Own", f"m{number:06}", ()) for number in range(COUNT)]

    async def find_series(self, query: SeriesQuery) -> list[Series]:
        await asyncio.sleep(0)
        begin = 0 if query.after is None else self.series.index(query.after) + 1
        return self.series[begin : begin + query.limit]


class Settled:
    """Metrics that are written down."""

    async def settle(self) -> None:
        pass


def call() -> Call:
    request = Request("POST", "/", "", {}, b"")
    return Call(request, account_root(ACCOUNT), "us-east-1", 0, "id", "http://a")


async def test_a_list_of_metrics_lets_others_run_after_each_thousand() -> None:
    """6,000 queues and topics took 0.3 s in one turn of the event loop."""
    listing = MetricListing(cast("Any", ManySeries()), cast("Any", Settled()))
    turns = 0
    done = asyncio.create_task(listing.list_metrics(call(), {}))
    while not done.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > COUNT // 1_000
    assert len(done.result()["Metrics"]) == PAGE_MAX


async def test_pages_of_metrics_follow_each_other() -> None:
    listing = MetricListing(cast("Any", ManySeries()), cast("Any", Settled()))
    names: list[str] = []
    token = ""
    while token is not None and len(names) < 3 * PAGE_MAX:
        answer = await listing.list_metrics(call(), {"NextToken": token})
        names += [metric["MetricName"] for metric in answer["Metrics"]]
        token = answer.get("NextToken")
    assert names == [f"m{number:06}" for number in range(3 * PAGE_MAX)]


class ManyQueues:
    """A directory of queues, each of which has dead letters of its own or of one that all share."""

    def __init__(self) -> None:
        names = [ResourceName(ACCOUNT, "us-east-1", f"q{number:06}") for number in range(COUNT)]
        shared = DeadLetterTarget(names[0], 3)
        self.queues = [
            Queue(number, name, dead_letter=shared if number % 2 else None)
            for number, name in enumerate(names, start=1)
        ]

    async def find(self, _: object, prefix: str, after: str, limit: int | None) -> list[Queue]:
        await asyncio.sleep(0)
        assert limit is not None
        assert limit <= 1_000
        begin = bisect_right(self.queues, after, key=key_of)
        return [queue for queue in self.queues[begin : begin + limit] if key_of(queue).startswith(prefix)]


def key_of(queue: Queue) -> str:
    return queue.name.key


async def test_sources_of_dead_letters_are_looked_for_a_thousand_at_a_time() -> None:
    directory = ManyQueues()
    queues = Queues(cast("Any", None), cast("Any", directory), cast("Any", None))
    sources = await queues.sources_of(directory.queues[0].name)
    assert sources == directory.queues[::2]


def forged(operation: str, key: str) -> str:
    """A token whose digest is right, as anybody can make one."""
    digest = blake2s(f"{operation}\n{key}".encode(), digest_size=6).digest()
    return urlsafe_b64encode(digest + key.encode()).decode()


@pytest.mark.parametrize("key", ["9" * 5_000, "9" * 10, "1e3", "-1", "x", "\u0661", "\u00b2", " 1"])
async def test_a_token_without_a_count_is_refused(key: str) -> None:
    """Each was an internal failure, and so was a limit of 5,000 digits."""
    with pytest.raises(AwsError, match="Invalid position parameter"):
        PAGES.cut("GetRestApis", {"position": forged("GetRestApis", key)}, range(9))
    with pytest.raises(AwsError, match="MaxResults must be between 1 and 500"):
        HTTP_PAGES.cut("GetApis", {"MaxResults": key}, range(9))
    query = {
        "Id": "a",
        "MetricStat": {"Metric": {"Namespace": "Own", "MetricName": "m"}, "Period": 60, "Stat": "Sum"},
    }
    params = {"StartTime": 0, "EndTime": 60_000, "MetricDataQueries": [query]}
    token = {"NextToken": forged("GetMetricData", key)}
    with pytest.raises(AwsError, match="The nextToken is invalid"):
        await MetricQueries(cast("Any", Settled())).get_metric_data(call(), {**params, **token})


@pytest.mark.parametrize("key", ["x", "1", "[]", "{}", '["a"]', '["a","b","c"]', '["a",{}]', '"abcd"'])
async def test_a_token_without_a_metric_is_refused(key: str) -> None:
    listing = MetricListing(cast("Any", ManySeries()), cast("Any", Settled()))
    with pytest.raises(AwsError, match="NextToken is invalid"):
        await listing.list_metrics(call(), {"NextToken": forged("ListMetrics", key)})


def test_a_forged_token_has_no_character_that_a_store_cannot_have() -> None:
    token = {"position": forged("GetRestApis", "a\0b")}
    with pytest.raises(AwsError, match="Invalid position parameter"):
        PAGES.after("GetRestApis", token)
