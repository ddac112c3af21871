"""SNS on an engine in memory, called without a wire; the clock moves when told, and endpoints remember."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
import pytest

from redrive.access.principals import ANONYMOUS, account_root
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.call import Call
from redrive.aws.sns.dialect import SnsDeliveryProfile
from redrive.aws.sns.documents.destinations import PROTOCOLS
from redrive.aws.sns.facade import Sns
from redrive.aws.sns.protection.audit import AuditLog
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.engine.engine import Engine
from redrive.engine.ports import Endpoint, PushRequest, Runtime
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery
from redrive.model.http import Request
from redrive.model.metric import MetricPoint
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import SimulatedClock
from tests.aws.sns.parts import BASE_URL, SECRET, TOKENS, notification_renderer, signing_pair, sns_parts

__all__ = ["BASE_URL", "signing_pair"]

ACCOUNT = "123456789012"
OTHER = "210987654321"
REGION = "us-east-1"
ENDPOINTS = tuple(sorted(PROTOCOLS.keys() - {"sqs"}))
SECOND_MS = 1000
DAY_MS = 86_400_000
_START = 1_767_225_600_000


class Recorder:
    """An endpoint that takes everything and remembers it."""

    def __init__(self) -> None:
        self.push_requests: list[PushRequest] = []

    async def push(self, push_request: PushRequest) -> Attempt:
        self.push_requests.append(push_request)
        return Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 1)

    async def close(self) -> None:
        pass


class Line(NamedTuple):
    """A line of a log that data protection wrote."""

    group: ResourceName
    stream: str
    at: int
    record: dict[str, Any]


class Stage:
    """SNS, with endpoints of each kind and queues beside it."""

    def __init__(self, *, open_queues: bool = True) -> None:
        self.clock = SimulatedClock(_START)
        self._recorders = {protocol: Recorder() for protocol in ENDPOINTS}
        self.endpoints: dict[str, Any] = dict(self._recorders)
        runtime = Runtime(self.clock, random.Random(7), "a")
        self.store = SqliteStore(None)
        self.engine = Engine(self.store, runtime, endpoints=self.endpoints)
        self.lines: list[Line] = []
        self.points: list[MetricPoint] = []
        audit_log = AuditLog(self, self.points.extend, random.Random(3), "node")
        parts = sns_parts(self.engine, audit_log)
        self.renderer = notification_renderer(signing_pair(), BASE_URL, parts)
        self.dialect = SnsDeliveryProfile(self.renderer, self.clock, open_queues=open_queues)
        self.engine.add_profile("sns", self.dialect)
        self.sns = Sns(
            self.engine, parts, SECRET, Identities(self.engine.resources.documents, restricts=False)
        )

    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        """See `LogSink.write`."""
        self.lines.append(Line(group, stream, at, orjson.loads(message)))

    async def call(
        self,
        operation: str,
        *,
        account: str | None = ACCOUNT,
        region: str = REGION,
        trace: str = "",
        **params: Any,
    ) -> Any:
        """Call an operation as the gateway does; an account of None is somebody who followed a link, with its token."""
        if account is None and operation == "Unsubscribe":
            params.setdefault("Token", TOKENS.token(params["SubscriptionArn"]))
        compiled = Service.load("sns").operation(operation)
        compiled.check(params)
        headers = {"x-amzn-trace-id": trace} if trace else {}
        principal = ANONYMOUS if account is None else account_root(account)
        call = Call(
            Request("POST", "/", "", headers, b""),
            principal,
            "" if account is None else region,
            self.clock.now(),
            "request",
            BASE_URL,
        )
        return await self.sns.operations[operation](call, params)

    async def advance(self, milliseconds: int) -> None:
        await self.clock.advance(milliseconds, self.engine.until_quiet)

    def push_to(self, protocol: str, endpoint: Endpoint) -> None:
        """Let this endpoint answer in the place of the recorder."""
        self._recorders[protocol].push = endpoint.push  # type: ignore[method-assign]  # that is the point
        self.endpoints[protocol] = endpoint

    # ---- what tests begin with -----------------------------------------------------------------------------

    async def topic(self, name: str = "orders", tags: dict[str, str] | None = None, **attributes: str) -> str:
        """Make a topic; its ARN."""
        if name.endswith(".fifo"):
            attributes = {"FifoTopic": "true", **attributes}
        labels = [{"Key": key, "Value": value} for key, value in (tags or {}).items()]
        made = await self.call("CreateTopic", Name=name, Attributes=attributes, Tags=labels)
        arn: str = made["TopicArn"]
        return arn

    async def queue(self, name: str, policy: str | None = None) -> str:
        """Make a queue; its ARN."""
        attributes = {} if policy is None else {"Policy": policy}
        ordered = name.endswith(".fifo")
        await self.engine.resources.queues.create(
            Queue(0, ResourceName(ACCOUNT, REGION, name), ordered=ordered, attributes=attributes)
        )
        return queue_arn(name)

    async def subscribe(
        self, topic: str, protocol: str, endpoint: str, account: str = ACCOUNT, **attributes: str
    ) -> str:
        """Subscribe; the subscription's ARN."""
        made = await self.call(
            "Subscribe",
            account=account,
            TopicArn=topic,
            Protocol=protocol,
            Endpoint=endpoint,
            Attributes=attributes,
            ReturnSubscriptionArn=True,
        )
        arn: str = made["SubscriptionArn"]
        return arn

    async def publish(self, topic: str, text: str = "hello", **params: Any) -> Any:
        return await self.call("Publish", TopicArn=topic, Message=text, **params)

    async def topic_attributes(self, arn: str) -> dict[str, str]:
        attributes: dict[str, str] = (await self.call("GetTopicAttributes", TopicArn=arn))["Attributes"]
        return attributes

    async def attributes(self, arn: str) -> dict[str, str]:
        answer = await self.call("GetSubscriptionAttributes", SubscriptionArn=arn)
        attributes: dict[str, str] = answer["Attributes"]
        return attributes

    async def set(self, arn: str, name: str, value: str) -> None:
        """Set an attribute of a subscription."""
        await self.call(
            "SetSubscriptionAttributes", SubscriptionArn=arn, AttributeName=name, AttributeValue=value
        )

    async def in_queue(self, name: str) -> list[Delivery]:
        queue = await self.engine.resources.queues.get(ResourceName(ACCOUNT, REGION, name))
        assert queue is not None
        return await self.engine.parts.store.peek(queue.id, 100)

    async def asked(self, protocol: str) -> dict[str, Any]:
        """The last thing that was pushed to an endpoint of a protocol, a document in JSON."""
        await self.advance(0)
        document: dict[str, Any] = orjson.loads(self.endpoints[protocol].push_requests[-1].body)
        return document


def queue_arn(name: str, account: str = ACCOUNT, region: str = REGION) -> str:
    return f"arn:aws:sqs:{region}:{account}:{name}"


def topic_arn(name: str, account: str = ACCOUNT, region: str = REGION) -> str:
    return f"arn:aws:sns:{region}:{account}:{name}"


@contextlib.contextmanager
def refused(code: str, message: str, status: int = 400) -> Iterator[None]:
    """The block must be refused with exactly this."""
    with pytest.raises(AwsError) as caught:
        yield
    error = caught.value
    assert (error.query_code, error.query_message, error.status) == (code, message, status)


def invalid(message: str) -> "contextlib.AbstractContextManager[None]":
    """The block must be refused as `InvalidParameter`, with its usual opening and this."""
    return refused("InvalidParameter", f"Invalid parameter: {message}")
