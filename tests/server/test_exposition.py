"""The text of /_redrive/metrics, read by Prometheus's own parser and held to its naming rules."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from redrive import __version__
from redrive.engine.engine import Engine
from redrive.engine.ports import Counts
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.model.errors import StoreUnavailable
from redrive.model.names import ResourceName
from redrive.runtime.machine import real_runtime
from redrive.runtime.simulated import SimulatedClock
from redrive.server.exposition import Exposition
from redrive.stores.sqlite.store import SqliteStore
from redrive.telemetry.gauges import SHOWN_MAX, Level, fullest
from redrive.telemetry.meters import NodeMeters
from redrive.telemetry.telemetry import Telemetry
from tests.telemetry.facts import HERE, TOPIC, attempted, queue

ODD = ResourceName("sub", 'a "group"\\', "topics:t\nx")


@dataclass
class Node:
    engine: Engine
    telemetry: Telemetry
    meters: NodeMeters

    async def text(self) -> str:
        refused = {"SignatureDoesNotMatch": 3}
        return await Exposition(self.engine, self.telemetry, self.meters, refused).text()

    async def families(self) -> dict[str, Metric]:
        return {family.name: family for family in text_string_to_metric_families(await self.text())}


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    """A node that counted something in each family."""
    runtime = real_runtime(SimulatedClock(0))
    store = SqliteStore(None)
    engine = Engine(store, runtime)
    await engine.open()
    resources = engine.resources
    telemetry = Telemetry(
        store,
        runtime.clock,
        resources.queues,
        resources.topics,
        engine.messages.archive_size,
        resources.subscriptions.of_backlog,
    )
    meters = NodeMeters(time.perf_counter)
    engine.operations.counts(queue("q")).messages_sent += 2
    telemetry.metrics.published(TOPIC, 1, 1, 5, 0)
    telemetry._gauges.levels = [Level(HERE._replace(name="q"), Counts(4, 2, 1), 77)]
    telemetry._backlogs.levels = [Level(ODD, Counts(1, 2, 3), 5)]
    meters.attempted(attempted(0, protocol="https"))
    meters.buried(queue("q"), 3, DeadLetterReason.EXHAUSTED, 0)
    meters.dropped(queue("q"), 1, DeadLetterReason.EXPIRED, 0)
    meters.commits.end(meters.commits.begin(), 17)
    meters.loop_lag.observe(0.002)
    await resources.topics.create(TOPIC)
    yield Node(engine, telemetry, meters)
    await engine.close()


def samples(family: Metric) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


# ---- the form ----------------------------------------------------------------------------------------------------


async def test_prometheus_s_own_parser_reads_it(node: Node) -> None:
    families = await node.families()
    assert samples(families["redrive_build_info"]) == {(__version__,): 1}
    assert samples(families["redrive_requests_refused"]) == {("SignatureDoesNotMatch",): 3}
    assert samples(families["redrive_topic_deliveries_retrying"]) == {tuple(ODD): 3}


def complaints(text: str) -> Iterable[str]:
    """Return the complaints of `promtool check metrics`, as far as they concern us."""
    heads = re.findall(r"^# (HELP|TYPE) (\S+) (.+)$", text, re.MULTILINE)
    helped = [name for kind, name, _ in heads if kind == "HELP"]
    typed = [name for kind, name, _ in heads if kind == "TYPE"]
    if helped != typed or len(set(typed)) < len(typed):
        yield "HELP and TYPE do not go together, once for each family"
    lines = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    if len(set(lines)) < len(lines):
        yield "a sample is there twice"
    for kind, name, said in heads:
        if kind == "TYPE":
            yield from _complaints_of_name(name, said)
        elif said.strip() in ("", name):
            yield f"{name}: no help"


def _complaints_of_name(name: str, kind: str) -> Iterable[str]:
    if not re.fullmatch(r"redrive_[a-z]+(_[a-z]+)*", name):
        yield f"{name}: not in snake case"
    if (kind == "counter") != name.endswith("_total"):
        yield f"{name}: a counter ends in _total, and nothing else does"
    if re.search(
        r"_(ms|milliseconds|minutes|hours|kilobytes|counter|gauge|histogram|count|sum|bucket)(_|$)", name
    ):
        yield f"{name}: another unit than seconds or bytes, a kind, or a suffix of histograms"
    if kind == "histogram" and not name.endswith(("_seconds", "_bytes", "_calls")):
        yield f"{name}: no unit"


async def test_metric_names_follow_prometheuss_conventions(node: Node) -> None:
    assert not list(complaints(await node.text()))


@pytest.mark.parametrize(
    "text",
    [
        "# HELP redrive_a_total A\n# TYPE redrive_a_total gauge\n",
        "# HELP redrive_a A\n# TYPE redrive_a counter\n",
        "# TYPE redrive_a gauge\n",
        "# HELP redrive_a_ms A\n# TYPE redrive_a_ms gauge\n",
        "# HELP redrive_a_time A\n# TYPE redrive_a_time histogram\n",
        "# HELP redrive_a A\n# TYPE redrive_a gauge\nredrive_a 1\nredrive_a 2\n",
    ],
)
def test_the_rules_can_be_broken(text: str) -> None:
    assert list(complaints(text))


async def test_histograms_add_up(node: Node) -> None:
    families = await node.families()
    histograms = [family for family in families.values() if family.type == "histogram"]
    assert len(histograms) == 4
    for family in histograms:
        buckets = [sample.value for sample in family.samples if sample.name.endswith("_bucket")]
        (count,) = [sample.value for sample in family.samples if sample.name.endswith("_count")]
        assert buckets == sorted(buckets)
        assert buckets[-1] == count == 1
        assert family.samples[len(buckets) - 1].labels["le"] == "+Inf"


# ---- what is shown -----------------------------------------------------------------------------------------------


async def test_a_queue_s_level_and_age_are_shown(node: Node) -> None:
    families = await node.families()
    name = tuple(HERE._replace(name="q"))
    shown = {
        metric: samples(families[f"redrive_queue_{metric}"])
        for metric in (
            "messages_available",
            "messages_in_flight",
            "messages_delayed",
            "oldest_message_age_seconds",
        )
    }
    assert shown == {
        "messages_available": {name: 4},
        "messages_in_flight": {name: 2},
        "messages_delayed": {name: 1},
        "oldest_message_age_seconds": {name: 77},
    }


async def test_attempts_and_what_did_not_arrive_are_shown_by_their_causes(node: Node) -> None:
    families = await node.families()
    assert {
        (sample.labels["protocol"], sample.labels["outcome"])
        for sample in families["redrive_attempt_duration_seconds"].samples
    } == {("https", Outcome.DELIVERED.value)}
    lost = samples(families["redrive_deliveries_lost"])
    assert samples(families["redrive_dead_letters"])["queue", "exhausted"] == 3
    assert (lost["queue", "expired"], lost["subscription", "client_error"]) == (1, 0)


async def test_without_its_store_a_node_shows_its_other_metrics(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> Any:
        raise StoreUnavailable("away")

    node.engine.parts.directory.forget("", "")
    for verb in ("get", "find", "count", "peek", "occupied"):
        monkeypatch.setattr(node.engine.parts.store, verb, away)
    families = await node.families()
    assert "redrive_circuit_breakers_open" not in families
    assert samples(families["redrive_topic_messages_published"]) == {tuple(TOPIC.name): 1}
    assert "redrive_store_commit_duration_seconds" in families


# ---- its size ----------------------------------------------------------------------------------------------------


async def test_a_hundred_thousand_queues_make_a_scrape_no_longer(node: Node) -> None:
    names = [HERE._replace(name=f"queue-{number}") for number in range(100_000)]
    node.telemetry._gauges.levels = fullest(Level(name, Counts(1, 0, 0), 3) for name in names)
    for number, name in enumerate(names):
        node.engine.operations.counts(queue(name.name, number + 10)).messages_sent += 1
    began = time.process_time()
    text = await node.text()
    seconds = time.process_time() - began
    families = {family.name: family for family in text_string_to_metric_families(text)}
    available = samples(families["redrive_queue_messages_available"])
    assert len(available) == SHOWN_MAX + 1
    assert sum(available.values()) == 100_000
    assert len(families["redrive_queue_messages_sent"].samples) == SHOWN_MAX
    assert seconds < 1
    assert len(text) < 4_000_000


async def test_ten_scrapes_at_once_share_one_text_that_is_written_in_turns(node: Node) -> None:
    exposition = Exposition(node.engine, node.telemetry, node.meters, {})
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    waiting = asyncio.create_task(others())
    texts = await asyncio.gather(*(exposition.text() for _ in range(10)))
    waiting.cancel()
    assert len({id(text) for text in texts}) == 1
    families = [line for line in texts[0].splitlines() if line.startswith("# TYPE redrive_topic_")]
    assert turns > len(families) > 10
    assert (await exposition.text()) is not texts[0]
