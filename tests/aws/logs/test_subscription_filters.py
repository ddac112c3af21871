"""Subscription filters: what is owed to functions, when, and in which parts."""

import gzip
import random
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from redrive.access.principals import account_root
from redrive.access.secret import InstallationSecret
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.rounds import ROUNDS_MAX, Rounds
from redrive.aws.kit.call import Call, ResourceScope
from redrive.aws.logs.destinations import DeliveryStreams, LogBatch, SubscribedEndpoint
from redrive.aws.logs.places import GROUP as GROUPS
from redrive.aws.logs.places import LogPlaces
from redrive.aws.logs.records import SubscriptionFilter
from redrive.aws.logs.subscriptions import SubscriptionFilters
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import PushRequest
from redrive.model.attempt import AttemptResult
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.model.http import Request
from redrive.model.log import LogEvent, LogQuery
from redrive.model.names import ResourceName
from tests.aws.cloudwatch.stage import ACCOUNT, REGION, Stage

MIB = 1_048_576
GROUP = ResourceName(ACCOUNT, REGION, "g")


@pytest.fixture
async def filters(stage: Stage) -> SubscriptionFilters:
    """The filters of a group with the number 1, to a function that is not there."""
    engine = stage.server.core.engine
    made = SubscriptionFilters(engine, stage.server.core.store, LogPlaces(engine.resources.documents), {})
    await made.stored_filters.put(
        SubscriptionFilter(GROUP, 1, "f", "x", 0, "arn:aws:lambda:::function:f", "")
    )
    return made


@pytest.fixture
def owed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[LogBatch]:
    """The deliveries that enter the backlog."""
    found: list[LogBatch] = []

    def enter(_draft: Any, _topic: Any, _subscription: Any, body: str, **_: bytes) -> None:
        found.append(LogBatch.unpack(body.encode()))

    monkeypatch.setattr(stage.server.core.engine.messages, "publish_alone_in", enter)
    return found


def event(message: str, stream: int = 1, group: int = 1) -> LogEvent:
    return LogEvent(group, stream, 5, 5, message)


async def test_each_stream_has_a_delivery_of_its_own(
    filters: SubscriptionFilters, owed: list[LogBatch]
) -> None:
    events = [event("x 1"), event("y"), event("x 2"), event("x 3", stream=2), event("x", group=2)]
    await filters.write_down(events, {1: "s", 2: "t"})
    assert [(each.stream, [told["message"] for told in each.events]) for each in owed] == [
        ("s", ["x 1", "x 2"]),
        ("t", ["x 3"]),
    ]


async def test_no_delivery_is_larger_than_a_function_takes(
    filters: SubscriptionFilters, owed: list[LogBatch]
) -> None:
    rng = random.Random(3)
    texts = ["x " + rng.randbytes(50_000).hex() for _ in range(10)]
    await filters.write_down([event(text) for text in texts], {1: "s"})
    assert [told["message"] for each in owed for told in each.events] == texts
    assert len(owed) == 2
    assert all(len(each.to_bytes(ACCOUNT)) * 4 / 3 < MIB for each in owed)


async def test_events_go_round_sixteen_times_at_most(
    filters: SubscriptionFilters, owed: list[LogBatch], caplog: pytest.LogCaptureFixture
) -> None:
    rounds = [event("x new"), event("x 15")._replace(rounds=15), event("x 16")._replace(rounds=ROUNDS_MAX)]
    await filters.write_down(rounds, {1: "s"})
    assert [(each.rounds, [told["message"] for told in each.events]) for each in owed] == [
        (15, ["x new", "x 15"])
    ]
    assert "log_subscription.circle group=" in caplog.text


def test_rounds_are_counted_by_headers_of_this_installation_alone() -> None:
    rounds = Rounds(InstallationSecret(b"s" * 32), random.Random(1))
    assert [rounds.of(rounds.header(number)) for number in (0, 3, 16)] == [0, 3, 16]
    others = Rounds(InstallationSecret(b"t" * 32), random.Random(1)).header(16)
    raised = rounds.header(1).replace("Lineage=1:", "Lineage=99:")
    for header in (None, "", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1", others, raised):
        assert rounds.of(header) == 0


def test_deliveries_owed_before_there_were_streams_are_still_read() -> None:
    owed = b'{"group":"g","stream":"s","filter":"f","function":"arn","events":[]}'
    assert LogBatch.unpack(owed) == LogBatch("g", "s", "f", "arn", [])


# ---- delivery streams ------------------------------------------------------------------------------------------


@dataclass
class Firehose:
    """A service whose streams take records, or do not."""

    refusal: AwsError | None = None
    failed: int = 0
    records: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)

    @property
    def operations(self) -> dict[str, Any]:
        return {"PutRecordBatch": self.put}

    async def put(self, call: Call, params: dict[str, Any]) -> dict[str, Any]:
        if self.refusal is not None:
            raise self.refusal
        self.callers.append(call.principal.name)
        for record in params["Records"]:
            told = orjson.loads(gzip.decompress(record["Data"]))
            self.records.append((params["DeliveryStreamName"], told))
        return {"FailedPutCount": self.failed}

    async def scopes(self, call: Call, operation: str, params: Structure) -> list[ResourceScope]:
        """See `Facade.scopes`: as Firehose and Lambda, about whatever policies allow."""
        return [ResourceScope("*")]

    def action(self, call: Call, operation: str) -> str:
        return f"firehose:{operation}"

    def translated(self, refusal: RedriveError) -> AwsError:
        raise refusal


STREAM = f"arn:aws:firehose:{REGION}:{ACCOUNT}:deliverystream/s"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/r"
UNTESTED = (
    "Could not deliver test message to specified Firehose stream. Check if the given"
    " Firehose stream is in ACTIVE state."
)


@pytest.fixture
def firehose() -> Firehose:
    return Firehose()


@pytest.fixture
def streams(stage: Stage, firehose: Firehose) -> SubscriptionFilters:
    engine = stage.server.core.engine
    documents = engine.resources.documents
    calls = InnerCalls({"firehose": firehose}, engine.runtime)
    destination = DeliveryStreams(calls, Identities(documents, restricts=False))
    return SubscriptionFilters(
        engine, stage.server.core.store, LogPlaces(documents), {"firehose": destination}
    )


async def subscribe(streams: SubscriptionFilters, **params: Any) -> None:
    request = Request("POST", "/", "", {}, b"")
    call = Call(request, account_root(ACCOUNT), REGION, 7, "id", "http://localhost")
    wanted = {"logGroupName": "g", "filterName": "f", "filterPattern": "x", "destinationArn": STREAM}
    await streams.put_subscription_filter(call, {**wanted, "roleArn": ROLE, **params})


async def test_a_delivery_stream_is_tried_when_it_is_subscribed(
    streams: SubscriptionFilters, firehose: Firehose
) -> None:
    await subscribe(streams)
    text = "CWL CONTROL MESSAGE: Checking health of destination Firehose."
    control = {
        "messageType": "CONTROL_MESSAGE",
        "owner": "CloudwatchLogs",
        "logGroup": "",
        "logStream": "",
        "subscriptionFilters": [],
        "logEvents": [{"id": "", "timestamp": 7, "message": text}],
    }
    assert firehose.records == [("s", control)]


async def test_events_come_to_the_stream_and_what_it_does_not_take_is_tried_again(
    streams: SubscriptionFilters, firehose: Firehose, stage: Stage, owed: list[LogBatch]
) -> None:
    await subscribe(streams)
    (group,) = await stage.server.core.engine.resources.documents.find(GROUPS, "")
    await streams.write_down([event("x", group=group.id)], {1: "t"})
    (forwarded,) = owed
    endpoint = SubscribedEndpoint(streams._destinations)
    headers = {"account": ACCOUNT, "region": REGION}
    asked = PushRequest("", forwarded.pack().encode(), "application/json", headers, 1000)
    firehose.failed = 1
    assert (await endpoint.push(asked)).result is AttemptResult.FAILED
    firehose.failed = 0
    assert (await endpoint.push(asked)).result is AttemptResult.DELIVERED
    name, told = firehose.records[-1]
    assert (name, told["messageType"], told["logGroup"], told["logStream"]) == ("s", "DATA_MESSAGE", "g", "t")
    assert [each["message"] for each in told["logEvents"]] == ["x"]
    firehose.refusal = Service.load("firehose").error("ResourceNotFoundException", "gone")
    assert (await endpoint.push(asked)).result is AttemptResult.REFUSED


async def test_a_stream_that_takes_no_message_is_not_subscribed(
    streams: SubscriptionFilters, firehose: Firehose
) -> None:
    for params, text in (
        ({"roleArn": None}, "destinationArn for vendor firehose cannot be used without roleArn"),
        ({}, UNTESTED),
        (
            {"destinationArn": f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/s"},
            "Destinations of kinesis are not available: functions and Firehose delivery streams are.",
        ),
    ):
        firehose.refusal = Service.load("firehose").error("ResourceNotFoundException", "none")
        with pytest.raises(AwsError) as refused:
            await subscribe(streams, **params)
        assert (refused.value.code, refused.value.message) == ("InvalidParameterException", text)


async def test_a_role_that_does_not_trust_logs_fills_no_stream(stage: Stage, firehose: Firehose) -> None:
    core = stage.server.core
    documents = core.engine.resources.documents
    identities = Identities(documents, restricts=True)
    destination = DeliveryStreams(InnerCalls({"firehose": firehose}, core.runtime), identities)
    streams = SubscriptionFilters(core.engine, core.store, LogPlaces(documents), {"firehose": destination})
    for service, trusted in (("lambda", False), ("logs", True)):
        trust = {
            "Effect": "Allow",
            "Principal": {"Service": f"{service}.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
        document = orjson.dumps({"Version": "2012-10-17", "Statement": [trust]}).decode()
        await stage.call("iam", "CreateRole", RoleName=service, AssumeRolePolicyDocument=document)
        right = {"Effect": "Allow", "Action": "firehose:PutRecordBatch", "Resource": "*"}
        rights = orjson.dumps({"Version": "2012-10-17", "Statement": [right]}).decode()
        await stage.call("iam", "PutRolePolicy", RoleName=service, PolicyName="p", PolicyDocument=rights)
        role = f"arn:aws:iam::{ACCOUNT}:role/{service}"
        if trusted:
            await subscribe(streams, roleArn=role)
        else:
            with pytest.raises(AwsError, match="Could not deliver test message"):
                await subscribe(streams, roleArn=role)
    assert [":assumed-role/logs/" in caller for caller in firehose.callers] == [True]


async def test_events_are_on_disk_if_they_are_owed(
    filters: SubscriptionFilters, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One write for both: a crash leaves neither, or both."""
    store = stage.server.core.store
    writes: list[tuple[int, int]] = []
    write = type(store).write

    async def watched(self: Any, changes: Any, deliveries: Any = (), events: Any = ()) -> list[int]:
        writes.append((len(deliveries), len(events)))
        return await write(self, changes, deliveries, events)

    async def apart(_: object) -> None:
        raise AssertionError("events were written down by themselves")

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "write", watched)
        patched.setattr(type(store), "add_events", apart)
        await filters.write_down([event("x 1"), event("y")], {1: "s"})
    assert (1, 2) in writes
    assert [each.message for each in await store.find_events(LogQuery(1, limit=10))] == ["x 1", "y"]


async def test_of_events_that_the_store_refused_nothing_is_owed(
    filters: SubscriptionFilters, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wrote them hears of it, and writes them again."""

    async def away(*_: object) -> None:
        raise StoreUnavailable

    store = stage.server.core.store
    with monkeypatch.context() as patched:
        patched.setattr(type(store), "write", away)
        with pytest.raises(StoreUnavailable):
            await filters.write_down([event("x 1")], {1: "s"})
    assert await store.find_events(LogQuery(1, limit=10)) == []
