"""Firehose in memory, with a stream, and a bucket that takes nothing but by its operations."""

import random
from collections.abc import Awaitable, Sequence
from typing import Final

from typing_extensions import override

from redrive.aws.firehose.facade import Firehose
from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.gateway.gateway import Gateway
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Facade
from redrive.engine.engine import Engine
from redrive.engine.ports import LogSink, Runtime
from redrive.model.http import Request, Response
from redrive.model.metric import MetricPoint
from redrive.model.names import ResourceName
from tests.fuzz.json_world import JsonWorld

ACCOUNT: Final = "000000000000"
STREAM: Final = "orders"
SETTINGS: Final = {"RoleARN": f"arn:aws:iam::{ACCOUNT}:role/r", "BucketARN": "arn:aws:s3:::landing"}


class _Unread(LogSink):
    """Takes lines that nobody reads."""

    @override
    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        pass


def _count(points: Sequence[MetricPoint]) -> None:
    assert all(point.series.namespace == "AWS/Firehose" for point in points)


class FirehoseWorld(JsonWorld):
    """Firehose on a store in memory; its clock stands, so that nothing is delivered."""

    target = "Firehose_20150804"

    def __init__(self) -> None:
        super().__init__()
        runtime = Runtime(self._clock, random.Random(7), "node")
        self.engine = Engine(self._store, runtime)
        services: dict[str, Facade] = {}
        identities = Identities(self.engine.resources.documents, restricts=False)
        calls = InnerCalls(services, runtime)
        self.firehose = Firehose(
            self.engine, calls, identities, _count, _Unread(), lambda _: None, sole_node=True
        )
        services["firehose"] = self.firehose
        self._gateway = Gateway(runtime, TrustAll("us-east-1"), services, None)

    @override
    def handle(self, request: Request) -> Awaitable[Response]:
        return self._gateway.answer(request)

    @override
    async def open(self) -> None:
        """Make a stream in which a record waits."""
        await self.engine.open()
        await self.call(
            "CreateDeliveryStream", DeliveryStreamName=STREAM, ExtendedS3DestinationConfiguration=SETTINGS
        )
        await self.call("PutRecord", DeliveryStreamName=STREAM, Record={"Data": "b25l"})

    @override
    async def close(self) -> None:
        await self.firehose.deliveries.close()
        await super().close()
