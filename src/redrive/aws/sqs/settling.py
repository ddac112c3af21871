"""DeleteMessage, ChangeMessageVisibility, and both in batches."""

from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kit.messages import Entry, accepted
from redrive.aws.sqs import batches
from redrive.aws.sqs.access import QueueAccess, QueueQuotas
from redrive.aws.sqs.errors import error, invalid
from redrive.aws.sqs.handles import Handle, Handles
from redrive.aws.sqs.receiving import VISIBILITY_SECONDS_MAX
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import Settled
from redrive.model.queue import Queue

_REASON: Final = attrgetter("reason")
_EXPIRED: Final = frozenset({"lapsed", "superseded"})


class SettlingOperations:
    """Ends and extends the claims that receipt handles stand for.

    In a standard queue the handle of a message that was received again since still deletes it and changes its
    visibility, as recorded: it stands for the message's claim of now. In a FIFO queue it is refused.
    """

    def __init__(self, engine: Engine, access: QueueAccess, quotas: QueueQuotas, handles: Handles) -> None:
        self._engine = engine
        self._handles = handles
        self._access = access
        self._quotas = quotas

    async def delete_message(self, call: Call, params: Structure) -> Structure:
        url = params["QueueUrl"]
        queue = self._access.if_open(call, url) or await self._access.at(call, url, "DeleteMessage")
        self._quotas.take(queue, "DeleteMessage", call.now)
        handle = self._handles.read(params["ReceiptHandle"], queue)
        (settled,) = await self._delete(queue, ((handle.seq, handle.token),))
        _check_deleted(params, settled)
        return {}

    async def delete_message_batch(self, call: Call, params: Structure) -> Structure:
        entries = batches.entries_of(params, "DeleteMessageBatchRequestEntry")
        url = params["QueueUrl"]
        queue = self._access.if_open(call, url) or await self._access.at(call, url, "DeleteMessage")
        self._quotas.take(queue, "DeleteMessage", call.now)
        failures: list[Structure] = []
        handles = self._read_all(queue, entries, failures)
        settled = await self._delete(queue, [(handle.seq, handle.token) for _, handle in handles])
        return _answer(handles, settled, _check_deleted, failures)

    async def change_message_visibility(self, call: Call, params: Structure) -> Structure:
        url = params["QueueUrl"]
        queue = self._access.if_open(call, url) or await self._access.at(call, url, "ChangeMessageVisibility")
        handle = self._handles.read(params["ReceiptHandle"], queue)
        lease_ms = _lease_ms(params, handle, call.now)
        (settled,) = await self._extend(queue, ((handle.seq, handle.token, lease_ms),))
        _check_extended(params, settled)
        return {}

    async def change_message_visibility_batch(self, call: Call, params: Structure) -> Structure:
        entries = batches.entries_of(params, "ChangeMessageVisibilityBatchRequestEntry")
        url = params["QueueUrl"]
        queue = self._access.if_open(call, url) or await self._access.at(call, url, "ChangeMessageVisibility")
        failures: list[Structure] = []

        def extended_claim(entry: Entry, handle: Handle) -> tuple[int, int, int]:
            return handle.seq, handle.token, _lease_ms(entry, handle, call.now)

        claims = accepted(self._read_all(queue, entries, failures), extended_claim, failures)
        settled = await self._extend(queue, [claim for _, claim in claims])
        return _answer(claims, settled, _check_extended, failures)

    def _read_all(
        self, queue: Queue, entries: Sequence[Entry], failures: list[Structure]
    ) -> list[tuple[Entry, Handle]]:
        handles = ((entry, entry["ReceiptHandle"]) for entry in entries)
        return accepted(handles, lambda _, handle: self._handles.read(handle, queue), failures)

    # ---- handles of messages that were received again ------------------------------------------------------

    async def _delete(self, queue: Queue, claims: Sequence[tuple[int, int]]) -> list[Settled]:
        """Delete the messages of claims (sequence number, token), also those that were received again since."""
        settled = await self._engine.messages.delete(queue, claims)
        for index in _superseded_indexes(queue, settled):
            settled[index] = await self._settle_current(
                queue, claims[index][0], lambda claim: self._engine.messages.delete(queue, (claim,))
            )
        return settled

    async def _extend(self, queue: Queue, claims: Sequence[tuple[int, int, int]]) -> list[Settled]:
        """Extend claims (sequence number, token, milliseconds), also of messages that were received again since."""
        settled = await self._engine.messages.extend(queue, claims)
        for index in _superseded_indexes(queue, settled):
            seq, _, lease_ms = claims[index]

            def extend(claim: tuple[int, int], lease_ms: int = lease_ms) -> Awaitable[list[Settled]]:
                return self._engine.messages.extend(queue, ((*claim, lease_ms),))

            settled[index] = await self._settle_current(queue, seq, extend)
        return settled

    async def _settle_current(
        self, queue: Queue, seq: int, settle: Callable[[tuple[int, int]], Awaitable[list[Settled]]]
    ) -> Settled:
        """Settle the claim that a message has now; if a receive ends that one meanwhile, the next."""
        while True:
            deliveries = await self._engine.messages.peek(queue, 1, seq - 1)
            token = deliveries[0].token if deliveries and deliveries[0].seq == seq else None
            if token is None:
                return Settled(done=False, reason="gone")
            (settled,) = await settle((seq, token))
            if settled.reason != "superseded":
                return settled


def _answer(
    entries: Sequence[tuple[Entry, object]],
    settled: Sequence[Settled],
    check: Callable[[Entry, Settled], None],
    failures: list[Structure],
) -> Structure:
    """The answer of a batch whose claims were settled: an entry that `check` refuses is a failure."""
    results = zip((entry for entry, _ in entries), settled, strict=True)
    successful = [{"Id": entry["Id"]} for entry, _ in accepted(results, check, failures)]
    return batches.answer(successful, failures)


def _superseded_indexes(queue: Queue, settled: Sequence[Settled]) -> list[int]:
    """The indexes of claims that a later receive ended; none of a FIFO queue, whose earlier handles are of no use."""
    if queue.ordered or "superseded" not in map(_REASON, settled):
        return []
    return [index for index, result in enumerate(settled) if result.reason == "superseded"]


def _check_deleted(entry: Entry, settled: Settled) -> None:
    """A message that is already deleted is not an error; an expired claim of a FIFO queue is one."""
    if settled.reason in _EXPIRED:
        raise invalid("ReceiptHandle", entry["ReceiptHandle"], "The receipt handle has expired.")


def _check_extended(entry: Entry, settled: Settled) -> None:
    if settled.done:
        return
    if settled.reason == "lapsed":
        raise error("MessageNotInflight", "The specified message isn't in flight.")
    raise invalid(
        "ReceiptHandle",
        entry["ReceiptHandle"],
        "Message does not exist or is not available for visibility timeout change.",
    )


def _lease_ms(entry: Entry, handle: Handle, now: int) -> int:
    """The milliseconds for which a message stays invisible from now on; raises AwsError."""
    seconds: int | None = entry.get("VisibilityTimeout")
    if seconds is None or not 0 <= seconds <= VISIBILITY_SECONDS_MAX:
        raise invalid(
            "VisibilityTimeout",
            seconds,
            f"Must be between 0 and {VISIBILITY_SECONDS_MAX}, if provided.",
        )
    if now + seconds * 1000 > handle.claimed_at + VISIBILITY_SECONDS_MAX * 1000:
        raise invalid(
            "VisibilityTimeout",
            seconds,
            f"Total VisibilityTimeout for the message is beyond the limit [{VISIBILITY_SECONDS_MAX} seconds]",
        )
    return seconds * 1000
