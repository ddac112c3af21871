"""`python -m tests.story --orders 10000`: orders through the front door of the stack while one part after another fails.

Then the books are balanced: each order is fulfilled or in exactly one dead-letter queue of fulfilment, and billed or in
exactly one of billing, with its reason; drafts are billed alone. Everything is mended and sent back, and all orders are
fulfilled and billed.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import urlsplit

from redrive.cli.demo_story import (
    BILLING,
    BILLING_DLQ,
    BILLING_FANOUT_DLQ,
    FULFILMENT,
    FULFILMENT_DLQ,
    FULFILMENT_FANOUT_DLQ,
)
from tests.contracts.aws.cloudformation.stacks import ACCOUNT, Stacks
from tests.services.server import Server, serving
from tests.story.rental_car import EXAMPLE, allows, arn_of, order_in, template

FLAGS: Final = ("--clock", "simulated", "--functions", "on", "--allow-reset", "--log-level", "warning")
STATUSES: Final = ("confirmed", "confirmed", "confirmed", "canceled", "draft")
RETRIES_END: Final = 200  # seconds: two retries of Lambda's
RECEIVES: Final = 3
HOUR: Final = 3600
_MINUTES_10: Final = 600


class Drill:
    """The stack on a real server, and the books of its orders."""

    def __init__(self, server: Server, senders: int) -> None:
        self.server = server
        self._senders = senders
        self._stacks = Stacks(server)
        self.sqs, self.functions = self._stacks.of("sqs"), self._stacks.of("lambda")
        stack = self._stacks.create("rental", template(), Capabilities=["CAPABILITY_NAMED_IAM"])
        assert stack["StackStatus"] == "CREATE_COMPLETE", stack
        self.outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        self.sent: dict[str, str] = {}
        self.fulfilled: Counter[str] = Counter()

    # ---- orders ------------------------------------------------------------------------------------------------------

    def send(self, numbers: range, car: str) -> None:
        """Post orders, by several senders at once."""
        shares = [list(numbers)[at :: self._senders] for at in range(self._senders)]
        with ThreadPoolExecutor(self._senders) as pool:
            answers = Counter(
                status for found in pool.map(lambda share: self._post(share, car), shares) for status in found
            )
        assert answers == {200: len(numbers)}, answers
        self.advance(1)

    def advance(self, seconds: int) -> None:
        """Let time pass, and with it as many runs of the function as fall due."""
        address = urlsplit(self.server.url)
        assert address.hostname is not None
        connection = HTTPConnection(address.hostname, address.port, timeout=_MINUTES_10)
        connection.request("POST", "/_redrive/clock", json.dumps({"advance_seconds": seconds}))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        connection.close()

    def _post(self, numbers: list[int], car: str) -> list[int]:
        connection: HTTPConnection = self.server.connect()
        path, found = f"/_aws/execute-api/{self.outputs['ApiId']}/prod/orders", []
        for number in numbers:
            status = STATUSES[number % len(STATUSES)]
            self.sent[f"order-{number}"] = status
            order = {"order": f"order-{number}", "car": car, "status": status}
            connection.request("POST", path, json.dumps(order), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            found.append(answer.status)
        connection.close()
        return found

    def fulfil(self, *, knows_unicycles: bool) -> None:
        """Empty the queue of fulfilment; what it does not know it gives back, until it is a dead letter."""
        for messages in self._received(FULFILMENT, 30):
            for message in messages:
                order = json.loads(json.loads(message["Body"])["Message"])
                handle = {"QueueUrl": self.url(FULFILMENT), "ReceiptHandle": message["ReceiptHandle"]}
                if order["car"] == "unicycle" and not knows_unicycles:
                    self.sqs.change_message_visibility(**handle, VisibilityTimeout=0)
                else:
                    self.fulfilled[order["order"]] += 1
                    self.sqs.delete_message(**handle)

    def _received(self, queue: str, seconds: int) -> Iterator[list[Any]]:
        asked = {"QueueUrl": self.url(queue), "MaxNumberOfMessages": 10, "VisibilityTimeout": seconds}
        while messages := self.sqs.receive_message(**asked).get("Messages"):
            yield messages

    def url(self, queue: str) -> str:
        return f"{self.server.url}/{ACCOUNT}/{queue}"

    # ---- faults ------------------------------------------------------------------------------------------------------

    @contextmanager
    def topic_denied(self) -> Iterator[None]:
        """The queue of fulfilment takes nothing from the topic."""
        before = self.sqs.get_queue_attributes(QueueUrl=self.url(FULFILMENT), AttributeNames=["Policy"])
        policy = allows("sns.amazonaws.com", "sqs:SendMessage", arn_of(FULFILMENT))
        policy["Statement"][0]["Condition"] = {"ArnEquals": {"aws:SourceArn": f"{self.outputs['Topic']}-x"}}
        self._set_policy(json.dumps(policy))
        yield
        self._set_policy(before["Attributes"]["Policy"])

    def _set_policy(self, policy: str) -> None:
        self.sqs.set_queue_attributes(QueueUrl=self.url(FULFILMENT), Attributes={"Policy": policy})

    @contextmanager
    def billing_shut(self) -> Iterator[None]:
        """The topic may not invoke the function."""
        policy = json.loads(self.functions.get_policy(FunctionName=BILLING)["Policy"])
        sid = policy["Statement"][0]["Sid"]
        self._permit(sid, f"{self.outputs['Topic']}-x")
        yield
        self._permit(sid, self.outputs["Topic"])

    def _permit(self, sid: str, topic: str) -> None:
        named = {"FunctionName": BILLING, "StatementId": sid}
        self.functions.remove_permission(**named)
        allowed = {"Action": "lambda:InvokeFunction", "Principal": "sns.amazonaws.com"}
        self.functions.add_permission(**named, **allowed, SourceArn=topic)

    @contextmanager
    def lambda_out_of_order(self) -> Iterator[None]:
        """Each attempt at the function ends with 503: a server's error, which is retried."""
        endpoint = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:{BILLING}"
        self._fault({"endpoint": endpoint, "status": 503})
        yield
        self._fault({"endpoint": endpoint})
        self.advance(60)

    def _fault(self, fault: dict[str, Any]) -> None:
        assert self.server.ask("POST", "/_redrive/faults", json.dumps(fault).encode())[0] == 200

    # ---- the books ---------------------------------------------------------------------------------------------------

    def letters(self, queue: str) -> list[str]:
        """The orders in a dead-letter queue, which are there again afterwards."""
        found = [
            _order_of(message["Body"]) for messages in self._received(queue, HOUR) for message in messages
        ]
        self.advance(HOUR)
        return found

    def billed(self) -> Counter[str]:
        """The orders that the log of the function tells of."""
        pages = (
            self._stacks.of("logs")
            .get_paginator("filter_log_events")
            .paginate(logGroupName=f"/aws/lambda/{BILLING}", filterPattern="{ $.billed = * }")
        )
        return Counter(json.loads(event["message"])["billed"] for page in pages for event in page["events"])

    def causes(self, queue: str) -> dict[str, int]:
        """The causes of the letters in a queue, with their numbers."""
        path = f"/_redrive/dead-letter-causes?queue={queue}"
        _, body = self.server.ask("GET", path, headers=_CREDENTIALS)
        return {str(cause["failure"]): cause["dead_letters"] for cause in json.loads(body)["causes"]}

    def mend_and_send_back(self) -> None:
        """Billing learns of unicycles; what was moved is moved back, and what Lambda gave up is invoked again."""
        code = (EXAMPLE / "billing/billing.py").read_text().replace('"unicycle"', '"tricycle"')
        self._stacks.update("rental", template(code), Capabilities=["CAPABILITY_NAMED_IAM"])
        for messages in self._received(BILLING_DLQ, 30):
            for message in messages:
                self.functions.invoke(FunctionName=BILLING, InvocationType="Event", Payload=message["Body"])
                handle = message["ReceiptHandle"]
                self.sqs.delete_message(QueueUrl=self.url(BILLING_DLQ), ReceiptHandle=handle)
        for queue in (FULFILMENT_DLQ, FULFILMENT_FANOUT_DLQ, BILLING_FANOUT_DLQ):
            asked = json.dumps({"queue": queue}).encode()
            answer = self.server.ask("POST", "/_redrive/dead-letters", asked, _CREDENTIALS)
            assert answer[0] == 202, answer
        self.advance(HOUR)
        self.fulfil(knows_unicycles=True)


_CREDENTIALS: Final = {
    "Authorization": f"AWS4-HMAC-SHA256 Credential={ACCOUNT}/20260101/us-east-1/redrive/aws4_request"
}


def _order_of(text: str) -> str:
    body = json.loads(text)
    return order_in(body["Message"] if "Message" in body else body["Records"][0]["Sns"]["Message"])


def run(drill: Drill, orders: int, say: Callable[[str], object]) -> None:
    """Send the orders, balance the books, mend, and balance them again."""
    fifth = orders // 5
    began = time.monotonic()

    def send(part: int, car: str = "van") -> None:
        start = time.monotonic()
        drill.send(range(part * fifth, (part + 1) * fifth), car)
        drill.fulfil(knows_unicycles=False)
        say(
            f"  {fifth} orders in {time.monotonic() - start:.1f} s, their deliveries and fulfilment with them"
        )

    say("all is well")
    send(0)
    say("neither billing nor fulfilment knows what was ordered")
    send(1, "unicycle")
    say("the queue of fulfilment refuses the topic")
    with drill.topic_denied():
        send(2)
    say("the function of billing refuses the topic")
    with drill.billing_shut():
        send(3)
    say("Lambda answers with errors of a server")
    with drill.lambda_out_of_order():
        send(4)
    drill.advance(RETRIES_END)
    drill.fulfil(knows_unicycles=False)

    wanted = {order for order, status in drill.sent.items() if status != "draft"}
    for name, done, of_queue, of_topic, all_orders in (
        ("fulfilled", drill.fulfilled, FULFILMENT_DLQ, FULFILMENT_FANOUT_DLQ, wanted),
        ("billed", drill.billed(), BILLING_DLQ, BILLING_FANOUT_DLQ, set(drill.sent)),
    ):
        dead = Counter(drill.letters(of_queue)), Counter(drill.letters(of_topic))
        books = done + dead[0] + dead[1]
        assert books.keys() == all_orders, all_orders ^ books.keys()
        assert set(books.values()) == {1}, [order for order, count in books.items() if count > 1][:5]
        say(
            f"{name}: {len(done)}; in {of_queue}: {len(dead[0])}; in {of_topic}: {len(dead[1])} {drill.causes(of_topic)}"
        )
    drill.mend_and_send_back()
    assert drill.fulfilled.keys() == wanted, wanted ^ drill.fulfilled.keys()
    assert drill.billed().keys() == drill.sent.keys()
    twice = sum(count - 1 for books in (drill.fulfilled, drill.billed()) for count in books.values())
    say(
        f"after redrive {len(wanted)} of {len(wanted)} fulfilled and {len(drill.sent)} of {len(drill.sent)} billed"
    )
    say(f"{time.monotonic() - began:.0f} s in all; {twice} events of either more than once")


def main() -> int:
    """Run the drill."""
    parser = argparse.ArgumentParser(prog="python -m tests.story", description=__doc__)
    parser.add_argument("--orders", type=int, default=10_000)
    parser.add_argument("--senders", type=int, default=16)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="redrive-story-") as directory,
        serving(f"sqlite:///{directory}/redrive.db", *FLAGS) as server,
    ):
        run(Drill(server, asked.senders), asked.orders, lambda text: sys.stdout.write(f"{text}\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
