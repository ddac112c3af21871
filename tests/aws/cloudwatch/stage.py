"""A whole server in the test's own process, on a simulated clock, whose operations are called without the wire."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from redrive.access.principals import account_root
from redrive.app import Server, assembled
from redrive.aws.kit.call import Facade
from redrive.settings import Settings

ACCOUNT = "000000000000"
REGION = "us-east-1"
URL = "http://127.0.0.1:4566"


class Stage:
    """Calls operations, and lets time pass."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._calls = server.core.calls

    def facade(self, service: str) -> Facade:
        return self.server.core.services[service]

    async def call(
        self, service: str, operation: str, *, account: str = ACCOUNT, region: str = REGION, **params: Any
    ) -> dict[str, Any]:
        return await self._calls.call(service, operation, params, account_root(account), region)

    async def watch(self, operation: str, **params: Any) -> dict[str, Any]:
        """Call an operation of CloudWatch."""
        return await self.call("cloudwatch", operation, **params)

    @property
    def now(self) -> int:
        return self.server.core.runtime.clock.now()

    async def advance(self, seconds: float) -> None:
        assert self.server.time is not None
        await self.server.time.advance(round(seconds * 1000))

    # ---- metrics and alarms ------------------------------------------------------------------------------

    async def put(self, name: str = "m", *, ago: int = 0, **datum: Any) -> None:
        """Put a datum of the namespace `test`, so many seconds old."""
        data = [{"MetricName": name, "Timestamp": self.now - ago * 1000, **datum}]
        await self.watch("PutMetricData", Namespace="test", MetricData=data)

    async def alarm(self, name: str = "a", **params: Any) -> None:
        """Put an alarm: a sum of more than 0 of `test m` in a minute, unless it is said otherwise."""
        await self.watch("PutMetricAlarm", **{**of_one_metric(), "AlarmName": name, **params})

    async def described(self, name: str = "a", kind: str = "MetricAlarm") -> dict[str, Any]:
        found = await self.watch("DescribeAlarms", AlarmNames=[name], AlarmTypes=[kind])
        (alarm,) = found[f"{kind}s"]
        return dict(alarm)

    async def state(self, name: str = "a", kind: str = "MetricAlarm") -> str:
        return str((await self.described(name, kind))["StateValue"])

    async def history(self, name: str = "a", type_: str | None = None, **params: Any) -> list[dict[str, Any]]:
        """The history, latest first, with its data read."""
        wanted = {"HistoryItemType": type_} if type_ else {}
        found = await self.watch("DescribeAlarmHistory", AlarmName=name, **wanted, **params)
        return [
            item | {"HistoryData": orjson.loads(item["HistoryData"])} for item in found["AlarmHistoryItems"]
        ]

    # ---- topics and queues -------------------------------------------------------------------------------

    async def topic(self, name: str = "alarms", **params: Any) -> str:
        made = await self.call("sns", "CreateTopic", Name=name, **params)
        return str(made["TopicArn"])

    async def queue(self, name: str) -> str:
        """Make a queue; its URL."""
        return str((await self.call("sqs", "CreateQueue", QueueName=name))["QueueUrl"])

    async def received(self, url: str) -> list[str]:
        """The bodies of what is in a queue, taken out."""
        found = await self.call("sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
        messages = found.get("Messages") or []
        for message in messages:
            await self.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in messages]

    async def told(self, topic: str) -> str:
        """Subscribe a queue to a topic, which gets its messages as they are; its URL."""
        url = await self.queue("told")
        arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:told"
        attributes = {"RawMessageDelivery": "true"}
        await self.call(
            "sns", "Subscribe", TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=attributes
        )
        return url


def of_one_metric() -> dict[str, Any]:
    return {
        "MetricName": "m",
        "Namespace": "test",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 0.0,
        "ComparisonOperator": "GreaterThanThreshold",
    }


@asynccontextmanager
async def stage(**settings: Any) -> AsyncIterator[Stage]:
    """A stage whose server runs as long as the block."""
    chosen = Settings(**{"store": "sqlite://:memory:", "clock": "simulated", **settings})
    stop = asyncio.Event()
    async with assembled(chosen, URL) as server:
        await server.open()
        serving = asyncio.create_task(server.serve(URL, stop))
        yield Stage(server)
        stop.set()
        await asyncio.gather(serving, return_exceptions=True)
