"""A queue that an event source mapping drains, and the proof that each message got what it was owed.

One message in seven fails: every other one of those for ever, the others once. Messages of a group end in their order.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sqs.client import Queue

RECEIVES: Final = 3  # of a message, before it is a dead letter
LEASE_SECONDS: Final = 30
GROUPS: Final = 10
_BATCH: Final = 10
_FAILS_EACH: Final = 7
_FOR_EVER: Final = 100

#: Writes down what it gets, and says which messages have failed: with one of a group all that follow it there.
_HANDLER: Final = """
import json, os

def handler(event, context):
    lines, failed, stopped = [], [], set()
    for record in event["Records"]:
        told = json.loads(record["body"])
        receives = int(record["attributes"]["ApproximateReceiveCount"])
        fails = told["group"] in stopped or receives <= told["failures"]
        if fails:
            failed.append({"itemIdentifier": record["messageId"]})
            stopped.add(told["group"] or record["messageId"])
        lines.append(json.dumps([told["number"], receives, fails]) + "\\n")
    file = os.open(os.environ["FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, "".join(lines).encode())
    os.close(file)
    return {"batchItemFailures": failed}
"""


@dataclass(frozen=True)
class Call:
    """One message as the function got it once."""

    number: int
    receives: int
    failed: bool


class Draining:
    """A queue with a dead-letter queue, and a function that is to drain it.

    Attributes:
        messages: How many are in the queue.
    """

    def __init__(self, workshop: Workshop, messages: int, *, ordered: bool = False) -> None:
        """Fill a queue; of one that is ordered no message fails for ever, since what follows it would end with it."""
        self.workshop = workshop
        self.messages = messages
        self.ordered = ordered
        make = workshop.sqs.fifo if ordered else workshop.sqs.queue
        self.dead: Queue = make()
        # What follows a message of its group that failed is received in vain as well.
        receives = _FOR_EVER if ordered else RECEIVES
        policy = {"deadLetterTargetArn": self.dead.arn, "maxReceiveCount": receives}
        self.queue: Queue = make(RedrivePolicy=json.dumps(policy), VisibilityTimeout=str(LEASE_SECONDS))
        self.file: Path = workshop.server.log.parent / f"calls-{self.queue.name}"
        variables = {"Variables": {"FILE": str(self.file)}}
        self.function = workshop.function(_HANDLER, Environment=variables)
        for first in range(0, messages, _BATCH):
            self._send(range(first, min(first + _BATCH, messages)))

    def _send(self, numbers: Sequence[int]) -> None:
        entries = []
        for number in numbers:
            group = f"g{number % GROUPS}" if self.ordered else None
            told = {"number": number, "group": group, "failures": self.failures(number)}
            entry = {"Id": str(number), "MessageBody": json.dumps(told)}
            if group is not None:
                entry |= {"MessageGroupId": group, "MessageDeduplicationId": str(number)}
            entries.append(entry)
        answer = self.queue.call("send_message_batch", Entries=entries)
        assert len(answer["Successful"]) == len(entries)

    def failures(self, number: int) -> int:
        """The number of times that a message fails."""
        if number % _FAILS_EACH:
            return 0
        return 1 if self.ordered or number % 2 else _FOR_EVER

    def begin(self) -> None:
        """Let the function be fed, until nothing more is due."""
        self.workshop.client.create_event_source_mapping(
            EventSourceArn=self.queue.arn,
            FunctionName=self.function,
            BatchSize=_BATCH,
            FunctionResponseTypes=["ReportBatchItemFailures"],
        )
        self.workshop.server.advance(1)

    def end(self) -> int:
        """Let the visibility timeouts of all failures pass, and check that each message got what it was owed.

        Returns:
            How often messages were received.
        """
        one_by_one = self.messages // GROUPS // _FAILS_EACH if self.ordered else 0  # in each group
        for _ in range(RECEIVES + one_by_one):
            self.workshop.server.advance(LEASE_SECONDS)
        calls = [Call(*json.loads(line)) for line in self.file.read_text().splitlines()]
        self._check(calls)
        return len(calls)

    def _check(self, calls: Sequence[Call]) -> None:
        """Check that each message was received as often as it had to be, and is where it belongs."""
        received: dict[int, list[int]] = defaultdict(list)
        for call in calls:
            received[call.number].append(call.receives)
        assert sorted(received) == list(range(self.messages))
        dead = sorted(json.loads(body)["number"] for body in _all_bodies(self.dead))
        assert dead == [number for number in range(self.messages) if self.failures(number) == _FOR_EVER]
        assert self.queue.bodies() == []
        if self.ordered:
            self._check_order([call.number for call in calls if not call.failed])
            return
        for number, receives in received.items():
            assert receives == list(range(1, min(self.failures(number) + 1, RECEIVES) + 1)), number

    def _check_order(self, done: Sequence[int]) -> None:
        for group in range(GROUPS):
            of_group = [number for number in done if number % GROUPS == group]
            assert of_group == list(range(group, self.messages, GROUPS))


def _all_bodies(queue: Queue) -> Iterator[str]:
    while bodies := queue.bodies():
        yield from bodies
