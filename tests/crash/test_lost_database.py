"""A database that goes away under a server that serves, and comes back."""

import asyncio
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import asyncpg

from redrive.cli.demo_server import Billing
from tests.contracts.aws.sns.client import Sns
from tests.contracts.aws.sqs.client import Sqs, refused
from tests.services.postgres import PostgresServer
from tests.services.server import serving, wait_for_line

WAIT_SECONDS = 20  # for what comes in milliseconds; less than the 30 of a lease


def test_a_database_that_is_away_is_told_and_found_again(
    durable_postgres: PostgresServer, tmp_path: Path
) -> None:
    with serving(durable_postgres.url(), directory=tmp_path) as server:
        queue = Sqs(server).queue()
        kept = [queue.send("before")["MessageId"]]
        durable_postgres.crash()
        for _ in range(3):
            with refused("ServiceUnavailable", "Service is unavailable. Please try again.", status=503):
                queue.send("while it is away")
            with refused("ServiceUnavailable", status=503):
                queue.receive()
        assert server.ask("GET", "/_redrive/health")[0] == 503
        durable_postgres.start()
        kept.append(queue.send("after")["MessageId"])
        assert server.ask("GET", "/_redrive/health")[0] == 200
        assert [message["MessageId"] for message in queue.receive()] == kept
        log = server.log.read_text()
        assert log.count("store.lost error=") == 1
        assert "store.back" in log
        assert "Traceback" not in log


class Hesitating(Billing):
    """Takes every order, and says so when it is told to."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.confirmed = threading.Event()
        self.come = threading.Semaphore(0)
        self.speaks = threading.Event()

    def receive(self, notification: dict[str, Any]) -> int:
        status = super().receive(notification)
        if notification["Type"] == "SubscriptionConfirmation":
            self.confirmed.set()
        else:
            self.come.release()
            self.speaks.wait(WAIT_SECONDS)
        return status


def test_deliveries_accepted_while_the_database_restarted_are_not_pushed_again(
    durable_postgres: PostgresServer, tmp_path: Path
) -> None:
    billing = Hesitating()
    with serving(durable_postgres.url(), directory=tmp_path) as server:
        topic = Sns(server).topic()
        topic.subscribe("http", billing.url)
        assert billing.confirmed.wait(WAIT_SECONDS)
        orders = [f"order {number}" for number in range(20)]
        for order in orders:
            topic.publish(order)
        for _ in orders:
            assert billing.come.acquire(timeout=WAIT_SECONDS)
        durable_postgres.crash()
        billing.speaks.set()  # all are answered while there is nowhere to write that down
        wait_for_line(server.log, "dispatch.unsettled")
        durable_postgres.start()
        assert server.stop() == 0  # when all that was under way has ended, in much less than a lease
        log = server.log.read_text()
    billing.close()
    assert Counter(visit.order for visit in billing.visits) == Counter(orders)
    assert asyncio.run(_left(durable_postgres)) == 0
    assert log.count("dispatch.unsettled error=") == log.count("dispatch.settled: ") == 1
    assert "Traceback" not in log


async def _left(database: PostgresServer) -> int:
    connection = await asyncpg.connect(database.url())
    left: int = await connection.fetchval("SELECT count(*) FROM deliveries")
    await connection.close()
    return left
