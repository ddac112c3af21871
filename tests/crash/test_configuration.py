"""Configuration through kill -9: nothing stands half, what was acknowledged stands, and what was deleted is gone."""

import asyncio
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
import pytest

from redrive.model.names import ResourceName
from tests.contracts.aws.sns.client import Sns
from tests.contracts.aws.sqs.client import Queue
from tests.crash.administrators import ACCOUNT, REGION, Office
from tests.crash.rounds import PAUSE_TURNS_MAX
from tests.crash.stored import read_stored
from tests.services.postgres import PostgresServer
from tests.services.server import Server, new_server
from tests.simulation.administrators import Told
from tests.simulation.documents import Configuration

SEEDS = range(3)  # a start of the server each
CALLS_MAX = 400  # before the crash
FLAGS = ("--clock", "simulated", "--log-level", "error", "--skip-queue-waits")


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    sqlite = request.param == "sqlite"
    store = (
        f"sqlite:///{tmp_path}/redrive.db" if sqlite else request.getfixturevalue("durable_postgres").url()
    )
    one = new_server(store, *FLAGS, directory=tmp_path)
    one.start()
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.kill()


def test_no_crash_leaves_half_of_a_configuration(server: Server, request: pytest.FixtureRequest) -> None:
    told = Told()
    inbox = Sns(server, ACCOUNT).sqs.queue()
    postgres: PostgresServer | None = None
    if "sqlite" not in request.node.name:
        postgres = request.getfixturevalue("durable_postgres")
    due: set[str] = set()
    for seed in SEEDS:
        rng = random.Random(seed)
        office = Office(int(server.url.rpartition(":")[2]), rng, told, inbox.arn, rng.randint(1, CALLS_MAX))
        asyncio.run(_crashed(office, server, postgres if rng.random() < 0.5 else None))
        due |= office.due
        found = asyncio.run(read_stored(server.store))
        told.check(found)
        assert found.half_written() == []
        server.start()
        _check_counts(Sns(server, ACCOUNT), found)
    assert told.queues
    assert told.topics
    assert told.subscriptions
    assert due - set(_bodies(inbox)) == set()


def _check_counts(sns: Sns, found: Configuration) -> None:
    """Check that counts and lists agree with the stored documents."""
    listed = [topic["TopicArn"] for topic in sns.client.list_topics()["Topics"]]
    assert sorted(arn.rpartition(":")[2] for arn in listed) == _names_of(found.topics)
    for arn in listed:
        attributes = sns.client.get_topic_attributes(TopicArn=arn)["Attributes"]
        subscriptions = sns.client.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
        assert int(attributes["SubscriptionsConfirmed"]) == len(subscriptions)
    urls = sns.sqs.client.list_queues()["QueueUrls"]
    assert sorted(url.rpartition("/")[2] for url in urls) == _names_of(found.queues)


def _names_of(keys: Iterable[str]) -> list[str]:
    """The names of those that are SNS's or SQS's."""
    ours = [ResourceName.from_key(key) for key in keys]
    return sorted(name.name for name in ours if (name.account, name.region) == (ACCOUNT, REGION))


def _bodies(inbox: Queue) -> Iterator[str]:
    """All that is in it; notifications in their envelope or without."""
    while messages := inbox.receive():
        for message in messages:
            inbox.delete(message)
            body = message["Body"]
            yield orjson.loads(body)["Message"] if body.startswith("{") else body


async def _crashed(office: Office, server: Server, postgres: PostgresServer | None) -> None:
    """Let administrators work, and kill the server, after its database where there is one, at some moment of it."""
    working = asyncio.create_task(office.run())
    enough = asyncio.create_task(office.enough.wait())
    await asyncio.wait([working, enough], return_when=asyncio.FIRST_COMPLETED)
    for _ in range(office.rng.randrange(PAUSE_TURNS_MAX)):
        await asyncio.sleep(0)
    if postgres is not None:
        await asyncio.to_thread(postgres.crash)
    await asyncio.to_thread(server.kill)
    enough.cancel()
    await working
    if postgres is not None:
        await asyncio.to_thread(postgres.start)
