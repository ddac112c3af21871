"""`redrive demo --stay`: orders dead of three causes on a server that stays, for the console's workbench.

    Rentals ─┬─► Rental-Billing (HTTP) ─ answers 503 to all but two, and 400 to these ─┐
             │                                                                        ├─► Rentals-DLQ
    Rental-Fulfilment (SQS) ─ its consumer receives 12 and deletes none of them ──────┘

Billing is well again once the orders are dead, so that they can be sent back: by the clock of the system, on which the
demo's own story does not run.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from redrive.cli.demo_server import ACCOUNT, Billing, DemoServer
from redrive.runtime.machine import SystemClock

SCOPE: Final = f"{ACCOUNT}/us-east-1"
ORDERS: Final = 40_000
BAD: Final = 2
BAD_REQUEST, BUSY = 400, 503
GIVEN_UP: Final = 12
QUEUE: Final = "Rentals-DLQ"
_BATCH: Final = 10
_PROGRESS_EACH: Final = 4_000
_LOOK_MS: Final = 200
#: Four attempts at once: what the console shows as a timeline, without a minute of waiting.
_POLICY: Final = {"healthyRetryPolicy": {"numRetries": 3, "numNoDelayRetries": 3}}


class Scene:
    """Topics, queues and orders that died."""

    def __init__(self, server: DemoServer, billing: Billing, orders: int) -> None:
        """Set the scene with `orders` orders, the bad ones among them.

        `billing` is well: the server itself fails the attempts at it while the orders die.
        """
        self._server = server
        self._billing = billing
        self._orders = orders
        self._sns = server.client("sns")
        self._sqs = server.client("sqs")

    @property
    def console_url(self) -> str:
        """The workbench of the dead orders."""
        return f"{self._server.url}/_redrive/console/{SCOPE}/dead-letters/{QUEUE}"

    def make(self, progress: Callable[[int], None]) -> None:
        """Make the orders fail until they are dead letters; `progress` gets their number on the way."""
        dead = self._queue(QUEUE)
        fulfilment = self._queue("Rental-Fulfilment", deadLetterTargetArn=dead, maxReceiveCount=4)
        topic = self._sns.create_topic(Name="Rentals")["TopicArn"]
        self._sns.subscribe(
            TopicArn=topic,
            Protocol="http",
            Endpoint=self._billing.url,
            Attributes={
                "DeliveryPolicy": json.dumps(_POLICY),
                "RedrivePolicy": json.dumps({"deadLetterTargetArn": dead}),
            },
        )
        _wait(self._is_confirmed)
        self._publish_dead_letters(topic, BAD_REQUEST, range(BAD), progress)
        self._publish_dead_letters(topic, BUSY, range(BAD, self._orders), progress)
        self._answer_by(None)
        self._receive_until_dead(fulfilment)

    def _publish_dead_letters(
        self, topic: str, status: int, numbers: range, progress: Callable[[int], None]
    ) -> None:
        """Publish orders while attempts fail with a status, and wait until all of them are dead letters."""
        self._answer_by(status)
        for batch in _batches(numbers):
            entries = [
                {"Id": str(number), "Message": _order(number, bad=status == BAD_REQUEST)} for number in batch
            ]
            self._sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)
            if batch.stop // _PROGRESS_EACH > batch.start // _PROGRESS_EACH:
                progress(batch.stop)
        _wait(lambda: self._dead() >= numbers.stop)

    def _is_confirmed(self) -> bool:
        subscriptions = self._sns.list_subscriptions()["Subscriptions"]
        return all(subscription["SubscriptionArn"].startswith("arn:") for subscription in subscriptions)

    def _dead(self) -> int:
        return int(self._server.ask(f"/_redrive/dead-letter-causes?queue={QUEUE}")["available"])

    def _receive_until_dead(self, arn: str) -> None:
        """Receive some orders again and again, and never delete one: they become dead letters."""
        name = arn.rpartition(":")[2]
        url = f"{self._server.url}/{ACCOUNT}/{name}"
        for number in range(GIVEN_UP):
            self._sqs.send_message(QueueUrl=url, MessageBody=_order(self._orders + number, bad=False))
        while self._sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=_BATCH, VisibilityTimeout=0).get(
            "Messages"
        ):
            pass

    def _queue(self, name: str, **redrive: object) -> str:
        attributes = {"RedrivePolicy": json.dumps(redrive)} if redrive else {}
        self._sqs.create_queue(QueueName=name, Attributes=attributes)
        return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}"

    def _answer_by(self, status: int | None) -> None:
        """Let every attempt at billing end with a status, without a request; None: let requests through again."""
        self._server.ask("/_redrive/faults", {"endpoint": self._billing.url, "status": status})


def _wait(condition: Callable[[], bool]) -> None:
    """Return once a condition is true."""
    clock = SystemClock()
    while not condition():
        asyncio.run(clock.sleep_until(clock.now() + _LOOK_MS))


def _batches(numbers: range) -> Iterator[range]:
    for start in range(numbers.start, numbers.stop, _BATCH):
        yield range(start, min(start + _BATCH, numbers.stop))


def _order(number: int, *, bad: bool) -> str:
    """An order's text; a `bad` one has a currency that does not exist."""
    order: dict[str, Any] = {
        "order": 7000 + number,
        "customer": f"c-{300 + number % 977}",
        "car": ("compact", "van", "truck", "minibus")[number % 4],
        "total": f"{89 + number % 211}.90",
        "currency": "EURO" if bad else "EUR",
    }
    return json.dumps(order)


def stay(orders: int, show: Callable[[str], None], port: int = 0) -> int:
    """Make the dead orders on their own server, say where they are, and stay until somebody ends it (Ctrl-C)."""
    server = DemoServer.start("--allow-reset", port=port)
    billing = Billing(lambda: SystemClock().now() / 1000)
    scene = Scene(server, billing, orders)
    try:
        scene.make(lambda number: show(f"{number:,} of {orders:,} orders published"))
        show(
            f"{orders - BAD:,} orders died of 503, {BAD} of 400, {GIVEN_UP} were given up by their consumer."
        )
        show("Billing has recovered. The console, until Ctrl-C:")
        show(scene.console_url)
        server.process.wait()
    except KeyboardInterrupt:
        show("Ended.")
    finally:
        billing.close()
        server.stop()
    return 0
