"""Conditions after a crash: everything acknowledged is there, nothing twice, locks, handles, order, memory."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.crash.journal import Entry, Journal, Message, Violated
from tests.crash.load import LEASE_SECONDS, Load, fifo_params
from tests.crash.wire import Caller

PEEK = "/_aws/sqs/messages?ShowInvisible=true&ShowDelayed=true"
HANDLES_TRIED_MAX = 20  # a delete at a time is enough to see that handles work


@dataclass
class Checks:
    """The checks after one crash. Time has stood still, so whatever was in flight still is."""

    load: Load
    caller: Caller
    seen: Counter[str] = field(default_factory=Counter)

    async def at_once(self) -> None:
        """Check the conditions that can be seen before time goes on."""
        for journal in (self.load.standard, self.load.fifo):
            await self._nothing_lost_nothing_back(journal)
        await self._dead_letters_once()
        await self._attempts_repeated(self.load.fifo)
        for journal in (self.load.standard, self.load.fifo):
            await self._handles_work(journal)
            await self._locks_hold(journal)
        await self._repetitions_known(self.load.fifo)

    async def after_all_leases(self) -> None:
        """Check that when every lease and delay is over the remaining messages come once, in order."""
        for journal in (self.load.standard, self.load.fifo):
            for entry in journal.entries.values():
                entry.held, entry.delayed = False, False
            await self._drain(journal)
            left = [one for one in journal.entries.values() if one.message_id and one.deleted is False]
            if left:
                raise Violated(f"{len(left)} messages were lost: {left[:5]}")
        await self._dead_letters_once()

    # ---- what is there -----------------------------------------------------------------------------------------

    async def _present(self, url: str) -> list[Message]:
        answer = await self.caller.call("ReceiveMessage", path=PEEK, QueueUrl=url)
        messages: list[Message] = answer.get("Messages", [])
        return messages

    async def _nothing_lost_nothing_back(self, journal: Journal) -> None:
        messages = await self._present(journal.url)
        present = _once(message["Body"] for message in messages)
        for message in messages:
            entry = journal.entries.get(message["Body"])
            if entry is None or entry.message_id not in (None, message["MessageId"]):
                raise Violated(f"{message} is not what was sent: {entry}")
            if entry.deleted:
                raise Violated(f"{entry} was deleted and is back")
        for entry in journal.entries.values():
            if entry.message_id and entry.deleted is False and entry.body not in present:
                raise Violated(f"{entry} was acknowledged and is lost")
        self._batches_whole(journal, present)

    def _batches_whole(self, journal: Journal, present: set[str]) -> None:
        """A batch that was not acknowledged came whole or not at all; nobody can have deleted of it."""
        batches: dict[int, set[bool]] = {}
        for entry in journal.entries.values():
            if entry.batch is not None and entry.message_id is None and entry.deleted is False:
                batches.setdefault(entry.batch, set()).add(entry.body in present)
        torn = [batch for batch, found in batches.items() if len(found) > 1]
        if torn:
            raise Violated(f"batches {torn} came in part")

    async def _dead_letters_once(self) -> None:
        """Wherever a message was on its way, between queue, dead letters and back: it is in one place.

        A task may still be moving them, and one look at each queue could miss what passes between the two: so
        until two looks are the same.
        """
        load = self.load
        before, places = None, await self._places()
        while places != before:
            before, places = places, await self._places()
        present = _once(body for bodies in places for body in bodies)
        for entry in load.source.entries.values():
            if entry.message_id and entry.body not in present:
                raise Violated(f"{entry} is neither in its queue nor a dead letter")
        if unknown := present - load.source.entries.keys():
            raise Violated(f"{unknown} were never sent")

    async def _places(self) -> list[list[str]]:
        urls = (self.load.source.url, self.load.dead_url)
        return [sorted(message["Body"] for message in await self._present(url)) for url in urls]

    # ---- what was handed out -----------------------------------------------------------------------------------

    async def _attempts_repeated(self, journal: Journal) -> None:
        """A receive whose answer got lost is repeated by its attempt id; then somebody holds all that is in flight."""
        for attempt in sorted(journal.attempts):
            answer = await self.caller.call(
                "ReceiveMessage",
                QueueUrl=journal.url,
                MaxNumberOfMessages=10,
                VisibilityTimeout=LEASE_SECONDS,
                ReceiveRequestAttemptId=attempt,
            )
            journal.received(answer.get("Messages", []))
        journal.attempts.clear()
        for message in await self._present(journal.url):
            entry = journal.entries[message["Body"]]
            in_flight = message["Attributes"]["IsVisible"] == "false"
            if in_flight and entry.held is False and entry.deleted is False:
                raise Violated(f"{entry} is in flight, and nobody got it")

    async def _handles_work(self, journal: Journal) -> None:
        held = [one for one in journal.entries.values() if one.held and one.deleted is False]
        for entry in held[:HANDLES_TRIED_MAX]:
            await self.caller.call("DeleteMessage", QueueUrl=journal.url, ReceiptHandle=entry.handle)
            entry.deleted = True
        present = {message["Body"] for message in await self._present(journal.url)}
        if back := [entry for entry in held[:HANDLES_TRIED_MAX] if entry.body in present]:
            raise Violated(f"{back} were deleted by the handles from before the crash, and are there")

    async def _locks_hold(self, journal: Journal) -> None:
        """Whatever is received now was free: `received` complains of anything else."""
        answer = await self.caller.call(
            "ReceiveMessage",
            QueueUrl=journal.url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=LEASE_SECONDS,
        )
        journal.received(answer.get("Messages", []))

    # ---- what is remembered ------------------------------------------------------------------------------------

    async def _repetitions_known(self, journal: Journal) -> None:
        """The last sends of each group are repeated: the acknowledged ones are known, the others sent at last."""
        before = max((entry.sequence for entry in journal.entries.values() if entry.sequence), default="")
        for group in journal.groups.values():
            for entry in group[-3:]:
                sent = await self.caller.call("SendMessage", **fifo_params(journal, entry))
                journal.sent(entry, sent)
        fresh = journal.sending(Entry("fresh", group="fresh"))
        journal.sent(fresh, await self.caller.call("SendMessage", **fifo_params(journal, fresh)))
        if (fresh.sequence or "") <= before:
            raise Violated(f"sequence number {fresh.sequence} after {before}")

    async def _drain(self, journal: Journal) -> None:
        while True:
            answer = await self.caller.call("ReceiveMessage", QueueUrl=journal.url, MaxNumberOfMessages=10)
            messages = answer.get("Messages", [])
            if not messages:
                return
            claimed = journal.received(messages)
            wanted = [
                {"Id": str(number), "ReceiptHandle": entry.handle} for number, entry in enumerate(claimed)
            ]
            await self.caller.call("DeleteMessageBatch", QueueUrl=journal.url, Entries=wanted)
            for entry in claimed:
                entry.deleted = True


def _once(bodies: Iterable[str]) -> set[str]:
    counted = Counter(bodies)
    if twice := [body for body, number in counted.items() if number > 1]:
        raise Violated(f"{twice} are there more than once")
    return set(counted)
