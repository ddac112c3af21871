"""The load of one round: senders, receivers and deleters who write down what they know, until the server is gone."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.crash.journal import Entry, Journal
from tests.crash.wire import Answer, Caller, Lost, Refused

LEASE_SECONDS = 600  # longer than any load, and the clock stands still anyway
DELAY_SECONDS = 300
GROUPS_PER_SENDER = 3


class GoneHome(Exception):  # noqa: N818 - a worker's end
    """No further calls are made: what was about to be asked was not."""


class TaskActive(Exception):  # noqa: N818 - an answer
    """The move task before is not done."""


@dataclass
class Load:
    """Everybody at work on one server.

    Attributes:
        port: The server's.
        rng: Decides what is done next.
        standard: A standard queue, received from and deleted from.
        fifo: A FIFO queue.
        source: A queue whose messages die after two receives.
        dead: Where they go.
        stop_after: After so many acknowledged calls `enough` is set.
        calls_left: After so many more calls everybody goes home; None for no end.
    """

    port: int
    rng: random.Random
    standard: Journal
    fifo: Journal
    source: Journal
    dead_url: str
    dead_arn: str
    stop_after: int
    acknowledged: int = 0
    calls_left: int | None = None
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Work until the server is gone."""
        workers: list[Callable[[Caller], Awaitable[None]]] = [
            *(self._send_standard for _ in range(3)),
            *(self._receive_standard for _ in range(3)),
            *(self._send_fifo for _ in range(2)),
            *(self._receive_fifo for _ in range(2)),
            self._feed_dead_letters,
            self._redrive,
        ]
        async with asyncio.TaskGroup() as group:
            for number, worker in enumerate(workers):
                group.create_task(self._until_lost(worker), name=f"{worker.__name__}-{number}")

    async def _until_lost(self, worker: Callable[[Caller], Awaitable[None]]) -> None:
        caller = Caller(self.port)
        try:
            await worker(caller)
        except (Lost, GoneHome):
            self.enough.set()
        finally:
            await caller.close()

    async def _call(self, caller: Caller, operation: str, **params: Any) -> Answer:
        """A call whose answer counts; one that the store did not take is as good as lost."""
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left < 0:
                raise GoneHome
        try:
            answer = await caller.call(operation, **params)
        except Refused as refusal:
            if refusal.shape == "ServiceUnavailableException":
                raise Lost(operation) from refusal
            if "There is already a task running" in str(refusal):
                raise TaskActive from refusal
            raise
        self.acknowledged += 1
        if self.acknowledged >= self.stop_after:
            self.enough.set()
        return answer

    # ---- standard ----------------------------------------------------------------------------------------------

    async def _send_standard(self, caller: Caller) -> None:
        journal = self.standard
        while True:
            if self.rng.random() < 0.3:
                await self._send_batch(caller, journal)
                continue
            delayed = self.rng.random() < 0.1
            entry = journal.sending(Entry(f"s{journal.next_number()}", delayed=delayed))
            params = {"DelaySeconds": DELAY_SECONDS} if delayed else {}
            sent = await self._call(
                caller, "SendMessage", QueueUrl=journal.url, MessageBody=entry.body, **params
            )
            journal.sent(entry, sent)

    async def _send_batch(self, caller: Caller, journal: Journal) -> None:
        batch = journal.next_number()
        number = self.rng.randint(2, 10)
        entries = [journal.sending(Entry(f"b{journal.next_number()}", batch=batch)) for _ in range(number)]
        answer = await self._call(
            caller,
            "SendMessageBatch",
            QueueUrl=journal.url,
            Entries=[{"Id": entry.body, "MessageBody": entry.body} for entry in entries],
        )
        for sent in answer["Successful"]:
            journal.sent(journal.entries[sent["Id"]], sent)

    async def _receive_standard(self, caller: Caller) -> None:
        while True:
            claimed = await self._receive(caller, self.standard)
            await self._settle(caller, self.standard, claimed)

    async def _receive(self, caller: Caller, journal: Journal, **params: Any) -> list[Entry]:
        answer = await self._call(
            caller,
            "ReceiveMessage",
            QueueUrl=journal.url,
            MaxNumberOfMessages=self.rng.randint(1, 10),
            VisibilityTimeout=LEASE_SECONDS,
            **params,
        )
        return journal.received(answer.get("Messages", []))

    async def _settle(self, caller: Caller, journal: Journal, claimed: list[Entry]) -> None:
        """Delete, in one batch or one by one, give back, extend, or keep."""
        choice = self.rng.random()
        if choice < 0.3 and claimed:
            await self._delete_batch(caller, journal, claimed)
        elif choice < 0.8:
            for entry in claimed:
                await self._delete(caller, journal, entry)
        elif choice < 0.9:
            for entry in reversed(claimed):
                await self._give_back(caller, journal, entry)
        elif choice < 0.95:
            for entry in claimed:
                await self._hide(caller, journal, entry, LEASE_SECONDS)

    async def _delete(self, caller: Caller, journal: Journal, entry: Entry) -> None:
        entry.deleted = None
        await self._call(caller, "DeleteMessage", QueueUrl=journal.url, ReceiptHandle=entry.handle)
        entry.deleted = True

    async def _delete_batch(self, caller: Caller, journal: Journal, claimed: list[Entry]) -> None:
        for entry in claimed:
            entry.deleted = None
        wanted = [{"Id": entry.body.replace(":", "_"), "ReceiptHandle": entry.handle} for entry in claimed]
        answer = await self._call(caller, "DeleteMessageBatch", QueueUrl=journal.url, Entries=wanted)
        assert len(answer["Successful"]) == len(claimed), answer
        for entry in claimed:
            entry.deleted = True

    async def _give_back(self, caller: Caller, journal: Journal, entry: Entry) -> None:
        handle, entry.held = entry.handle, None
        await self._hide(caller, journal, entry, 0)
        journal.given_back(entry, handle)

    async def _hide(self, caller: Caller, journal: Journal, entry: Entry, seconds: int) -> None:
        await self._call(
            caller,
            "ChangeMessageVisibility",
            QueueUrl=journal.url,
            ReceiptHandle=entry.handle,
            VisibilityTimeout=seconds,
        )

    # ---- FIFO --------------------------------------------------------------------------------------------------

    async def _send_fifo(self, caller: Caller) -> None:
        """A sender has groups of its own, so that it knows their order."""
        journal = self.fifo
        mine = [f"g{journal.next_number()}" for _ in range(GROUPS_PER_SENDER)]
        while True:
            group = self.rng.choice(mine)
            entry = journal.sending(Entry(f"{group}:{len(journal.groups[group])}", group=group))
            for _ in range(2 if self.rng.random() < 0.2 else 1):
                journal.sent(entry, await self._call(caller, "SendMessage", **fifo_params(journal, entry)))

    async def _receive_fifo(self, caller: Caller) -> None:
        journal = self.fifo
        while True:
            attempt = f"a{journal.next_number()}"
            journal.attempts.add(attempt)
            claimed = await self._receive(caller, journal, ReceiveRequestAttemptId=attempt)
            journal.attempts.discard(attempt)
            await self._settle(caller, journal, claimed)

    # ---- dead letters ------------------------------------------------------------------------------------------

    async def _feed_dead_letters(self, caller: Caller) -> None:
        journal = self.source
        while True:
            for _ in range(5):
                entry = journal.sending(Entry(f"d{journal.next_number()}"))
                sent = await self._call(caller, "SendMessage", QueueUrl=journal.url, MessageBody=entry.body)
                journal.sent(entry, sent)
            await self._call(
                caller,
                "ReceiveMessage",
                QueueUrl=journal.url,
                MaxNumberOfMessages=10,
                VisibilityTimeout=0,
            )

    async def _redrive(self, caller: Caller) -> None:
        while True:
            with contextlib.suppress(TaskActive):
                await self._call(caller, "StartMessageMoveTask", SourceArn=self.dead_arn)
            await self._call(caller, "ReceiveMessage", QueueUrl=self.dead_url, VisibilityTimeout=0)


def fifo_params(journal: Journal, entry: Entry) -> dict[str, str]:
    """The parameters of a FIFO send, the same every time."""
    return {
        "QueueUrl": journal.url,
        "MessageBody": entry.body,
        "MessageGroupId": entry.group,
        "MessageDeduplicationId": entry.body,
    }
