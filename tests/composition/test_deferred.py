"""Services are made when they are first asked for, or when the store holds work that they have by themselves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from redrive.access.principals import account_root
from redrive.app import Server, assembled
from redrive.aws.cloudwatch.alarms.records import ALARMS
from redrive.composition.extension import Extension
from redrive.composition.extensions import DeferredServices
from redrive.engine.ports import Put
from redrive.settings import Settings
from tests.console.services import archive

URL: Final = "http://127.0.0.1:4566"
ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Server]:
    settings = Settings(store=f"sqlite:///{folder}/redrive.db", functions="on")
    async with assembled(settings, URL) as server:
        await server.open()
        yield server


def made(server: Server) -> set[str]:
    """The services that were made of those that can wait."""
    return {each.name for each in server.parts.deferred if each.is_open}


async def call(server: Server, service: str, operation: str, **params: Any) -> Any:
    return await server.core.calls.call(service, operation, params, account_root(ACCOUNT), REGION)


async def put_alarm(server: Server) -> None:
    metric = {"Namespace": "n", "MetricName": "m", "Period": 60, "Statistic": "Sum"}
    rule = {"EvaluationPeriods": 1, "Threshold": 1.0, "ComparisonOperator": "GreaterThanThreshold"}
    await call(server, "cloudwatch", "PutMetricAlarm", AlarmName="a", **metric, **rule)


async def create_stack(server: Server) -> None:
    template = '{"Resources":{"Queue":{"Type":"AWS::SQS::Queue"}}}'
    await call(server, "cloudformation", "CreateStack", StackName="s", TemplateBody=template)


async def create_stream(server: Server) -> None:
    await call(server, "s3", "CreateBucket", Bucket="bucket")
    bucket = {"RoleARN": f"arn:aws:iam::{ACCOUNT}:role/r", "BucketARN": "arn:aws:s3:::bucket"}
    await call(
        server,
        "firehose",
        "CreateDeliveryStream",
        DeliveryStreamName="d",
        ExtendedS3DestinationConfiguration=bucket,
    )


async def create_function(server: Server) -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/r"
    code = {"Code": {"ZipFile": archive()}, "Runtime": "python3.12", "Handler": "f.f", "Role": role}
    await call(server, "lambda", "CreateFunction", FunctionName="f", **code)


async def test_nothing_is_made_before_somebody_asks(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        assert made(server) == set()
        await call(server, "ssm", "DescribeParameters")
        assert made(server) == {"ssm"}


@pytest.mark.parametrize(
    ("begin", "service"),
    [
        (put_alarm, "cloudwatch"),
        (create_stack, "cloudformation"),
        (create_stream, "firehose"),
        (create_function, "lambda"),
    ],
)
async def test_services_with_work_of_their_own_are_there_before_a_restarted_server_is_ready(
    tmp_path: Path, begin: Callable[[Server], Awaitable[None]], service: str
) -> None:
    async with serving(tmp_path) as server:
        await begin(server)
    async with serving(tmp_path) as server:
        assert made(server) == {service}
        assert len(server.parts.clock_driven) == 1


async def test_the_first_work_that_another_node_makes_is_heard_of(tmp_path: Path) -> None:
    kind = ALARMS.name
    (tmp_path / "other").mkdir()
    async with serving(tmp_path / "other") as server:
        await put_alarm(server)
        (alarm,) = await server.core.store.find(kind, "")
    async with serving(tmp_path) as server:
        await server.core.store.write([Put(kind, alarm.key, alarm.document)])
        assert made(server) == set()
        server.core.engine.resources.documents.forget(kind, alarm.key)  # as the store tells it
        (begun,) = (task for task in asyncio.all_tasks() if task.get_name() == "redrive-wake")
        await begun
        assert made(server) == {"cloudwatch"}
        assert len(server.parts.clock_driven) == 1


async def test_work_that_comes_while_a_node_looks_for_work_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = ALARMS.name
    (tmp_path / "other").mkdir()
    async with serving(tmp_path / "other") as server:
        await put_alarm(server)
        (alarm,) = await server.core.store.find(kind, "")
    async with serving(tmp_path) as server:
        documents, wake = server.core.engine.resources.documents, server.parts.wake

        async def wake_too_early() -> None:
            await wake()
            if not made(server):
                await server.core.store.write([Put(kind, alarm.key, alarm.document)])
                documents.forget(kind, alarm.key)

        monkeypatch.setattr(server.parts, "wake", wake_too_early)
        documents.forget(kind, "removed again")
        (begun,) = (task for task in asyncio.all_tasks() if task.get_name() == "redrive-wake")
        await begun
        assert made(server) == {"cloudwatch"}


def _module(_: ModuleType) -> Extension:
    return Extension()


async def test_callers_who_ask_at_once_share_one_and_a_cancelled_one_leaves_it_to_the_others(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as server:
        opened: list[Extension] = []

        async def add(extension: Extension) -> None:
            opened.append(extension)

        deferred = DeferredServices(server.core, "s3", ["s3"], _module)
        deferred.on_opened = add
        first, second = asyncio.ensure_future(deferred.open()), asyncio.ensure_future(deferred.open())
        await asyncio.sleep(0)
        first.cancel()
        assert await second is await deferred.open()
        assert opened == [await second]


async def test_a_service_that_could_not_be_made_is_made_for_the_next_who_asks(tmp_path: Path) -> None:
    failures = [RuntimeError("no room")]

    def make(_: ModuleType) -> Extension:
        if failures:
            raise failures.pop()
        return Extension()

    async with serving(tmp_path) as server:
        deferred = DeferredServices(server.core, "s3", ["s3"], make)
        with pytest.raises(RuntimeError, match="no room"):
            await deferred.open()
        assert await deferred.open() == Extension()
