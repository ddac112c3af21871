"""A store in a hundred lines: one dictionary, no index, no speed; the oracle of the state machine.

Where a real store may choose (which group first, how the turns of a fair queue fall), the model does not choose: it
is told what the store did, checks that this was allowed and that nothing was left undone, and follows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from redrive.engine.ports import (
    Change,
    Claim,
    ClaimRequest,
    ClaimResult,
    Counts,
    Enqueued,
    Moved,
    MoveRequest,
    MoveTarget,
    NewDelivery,
    Put,
    Remove,
    RequireNone,
    Resource,
    Settled,
    Settlement,
)
from redrive.model.claiming import death_reason, offer
from redrive.model.delivery import Delivery, Outcome, as_dead_letter, as_redriven

Rows = dict[int, Delivery]

DONE: Final = Settled(done=True)


def due_first(delivery: Delivery, now: int) -> tuple[int, int]:
    """The order of a line without groups: what was claimed and came back is at its place of arrival."""
    came_back = delivery.token is not None and delivery.available_at <= now
    return 0 if came_back else delivery.available_at, delivery.seq


@dataclass
class Model:
    """All deliveries of all queues, by their place.

    Attributes:
        alone: Deliveries of unordered groups that do not wait for a turn: delayed on arrival, or claimed before.
        documents: By kind and key, with their versions.
        memories: For each key of deduplication the original and how long it is remembered.
    """

    rows: Rows = field(default_factory=dict)
    alone: set[int] = field(default_factory=set)
    memories: dict[tuple[int, str], tuple[Enqueued, int]] = field(default_factory=dict)
    documents: dict[tuple[str, str], Resource] = field(default_factory=dict)

    def queue(self, queue_id: int) -> list[Delivery]:
        """Return the deliveries that `peek` shows."""
        return sorted(
            (row for row in self.rows.values() if row.queue_id == queue_id), key=lambda row: row.seq
        )

    def count(self, queue_id: int, now: int) -> Counts:
        """Return the counts that `count` answers."""
        waiting = [row for row in self.queue(queue_id) if row.available_at > now]
        claimed = sum(row.token is not None for row in waiting)
        return Counts(len(self.queue(queue_id)) - len(waiting), claimed, len(waiting) - claimed)

    # ---- documents --------------------------------------------------------------------------------------

    def write(self, changes: Sequence[Change]) -> list[int] | None:
        """Documents were changed; the answers, or None where it is refused."""
        after, answers = dict(self.documents), []
        for change in changes:
            at = change[0], change[1]
            stored = self.documents[at].version if at in self.documents else 0
            if not isinstance(change, RequireNone) and change.version not in (None, stored):
                return None
            after.pop(at, None) if isinstance(change, Remove) else None
            if isinstance(change, Put):
                stored = stored + 1 if stored else change.first
                after[at] = Resource(*at, stored, change.document)
            answers.append(0 if isinstance(change, RequireNone) else stored)
        for kind, prefix in (change for change in changes if isinstance(change, RequireNone)):
            if any(at[0] == kind and at[1].startswith(prefix) for at in after):
                return None
        self.documents = after
        return answers

    # ---- arriving ---------------------------------------------------------------------------------------

    def enqueue(self, new_deliveries: Sequence[NewDelivery], answers: Sequence[Enqueued]) -> None:
        """Deliveries were sent."""
        for new_delivery, answer in zip(new_deliveries, answers, strict=True):
            memory = (new_delivery.queue_id, new_delivery.deduplication_key or "")
            original, until = self.memories.get(memory, (None, 0))
            if original and until > new_delivery.enqueued_at:
                assert answer == replace(original, repeated=True)
                continue
            assert (answer.message_id, answer.repeated) == (new_delivery.message_id, False)
            if new_delivery.deduplication_key:
                self.memories[memory] = (answer, new_delivery.deduplicate_until)
            if new_delivery.available_at > new_delivery.enqueued_at and not new_delivery.ordered:
                self.alone.add(answer.seq)
            self._add(_delivery_of(new_delivery, answer.seq))

    def _add(self, delivery: Delivery) -> None:
        assert delivery.seq > max(self.rows, default=0)
        self.rows[delivery.seq] = delivery

    # ---- claiming ---------------------------------------------------------------------------------------

    def claim(self, request: ClaimRequest, answer: ClaimResult, left: Rows, buried: Rows) -> None:
        """A claim was made; `left` is in the queue now, `buried` in the dead-letter queue."""
        before = {row.seq: row for row in self.queue(request.queue_id)}
        gone = [row for row in before.values() if row.seq not in left]
        claimed = [before[delivery.seq] for delivery in answer.deliveries]
        assert all(row.available_at <= request.now for row in [*gone, *claimed])
        self._took_the_first([*gone, *claimed], before, request.now, ordered=request.ordered)
        self._bury(request, gone, answer, buried)
        for row, delivery in zip(claimed, answer.deliveries, strict=True):
            assert offer(row, request.limits, request.now) is Outcome.RETRY
            self._claim(request, row, delivery)
        if not request.ordered:
            self._hand_on_turns(request, left)
        if len(claimed) < request.limit:
            seqs = {row.seq for row in claimed}
            assert not [
                row for row in self._line(request) if row.available_at <= request.now and row.seq not in seqs
            ]
        if not claimed or (request.looks_ahead and len(claimed) < request.limit):
            assert answer.next_at == min((row.available_at for row in self._line(request)), default=None)

    def _took_the_first(self, taken: list[Delivery], before: Rows, now: int, *, ordered: bool) -> None:
        """Of each group the oldest were taken, and of those without a group those that were due first."""
        seqs = {row.seq for row in taken}
        groups: dict[str, list[Delivery]] = {}
        for row in before.values():
            if row.group_id is not None and (ordered or row.seq not in self.alone):
                groups.setdefault(row.group_id, []).append(row)
        alone = [row for row in before.values() if row.group_id is None]
        for line in (*groups.values(), sorted(alone, key=lambda row: due_first(row, now))):
            number = sum(row.seq in seqs for row in line)
            assert all(row.seq in seqs for row in line[:number]), "one was passed over"

    @staticmethod
    def _of_body(rows: Rows, body: str) -> Delivery:
        """No two messages of a history have the same body: by it they are known again wherever they went."""
        (found,) = [row for row in rows.values() if row.body == body]
        return found

    def _kept_order(self, gone: list[Delivery], after: Rows) -> None:
        """The members of each group arrived in the order in which they left."""
        groups: dict[str | None, list[int]] = {}
        for row in sorted(gone, key=lambda row: row.seq):
            groups.setdefault(row.group_id, []).append(self._of_body(after, row.body).seq)
        assert all(seqs == sorted(seqs) for seqs in groups.values())

    def _bury(self, request: ClaimRequest, gone: list[Delivery], answer: ClaimResult, buried: Rows) -> None:
        endings = [offer(row, request.limits, request.now) for row in gone]
        assert answer.expired == endings.count(Outcome.EXPIRED)
        assert answer.dead_lettered == endings.count(Outcome.DEAD_LETTERED) == len(gone) - answer.expired
        for row, outcome in zip(gone, endings, strict=True):
            del self.rows[row.seq]
            if outcome is Outcome.DEAD_LETTERED:
                end = death_reason(row, request.limits, request.now)
                self._dead_letter(row, request.dead_letters_to, request.now, buried, end)
        if request.ordered:
            dead = [
                row for row, outcome in zip(gone, endings, strict=True) if outcome is Outcome.DEAD_LETTERED
            ]
            self._kept_order(dead, buried)

    def _dead_letter(
        self, row: Delivery, target: MoveTarget | None, now: int, buried: Rows, failure: str
    ) -> None:
        assert target
        seq = self._of_body(buried, row.body).seq
        assert seq not in self.rows
        self.rows[seq] = as_dead_letter(
            row, target.queue_id, seq, now, ordered=target.ordered, failure=failure
        )

    def _claim(self, request: ClaimRequest, row: Delivery, delivery: Delivery) -> None:
        self.alone.add(row.seq)
        self.rows[row.seq] = replace(
            row,
            available_at=request.now + request.lease_ms,
            attempts=row.attempts + 1,
            token=request.token,
            first_claimed_at=request.now if row.first_claimed_at is None else row.first_claimed_at,
        )
        assert delivery == self.rows[row.seq]

    def _hand_on_turns(self, request: ClaimRequest, left: Rows) -> None:
        """Move a delivery that heads its group in a fair queue to the end of the line, as if it were due only now."""
        for row in self.queue(request.queue_id):
            waits_for_its_turn = row.group_id is not None and row.seq not in self.alone
            if waits_for_its_turn and left[row.seq].available_at == request.now:
                self.rows[row.seq] = replace(row, available_at=request.now)

    def _line(self, request: ClaimRequest | MoveRequest) -> list[Delivery]:
        """Deliveries that a claim may not pass over: in an ordered queue the oldest of each group, else all."""
        queue = self.queue(request.queue_id)
        if not request.ordered:
            return queue
        return list({row.group_id: row for row in reversed(queue)}.values())

    # ---- settling ---------------------------------------------------------------------------------------

    def refusal(self, queue_id: int, seq: int, token: int, now: int, *, ordered: bool) -> Settled | None:
        """Return the reason why a claim cannot be settled or extended, if it cannot."""
        row = self.rows.get(seq)
        if row is None or row.queue_id != queue_id:
            return Settled(done=False, reason="gone")
        if row.token != token:
            return Settled(done=False, reason="superseded")
        if ordered and row.available_at <= now:
            return Settled(done=False, reason="lapsed")
        return None

    def settle(self, queue_id: int, one: Settlement, now: int, *, ordered: bool, after: Rows) -> Settled:
        """A claim ended; `after` is what all queues hold now."""
        refusal = self.refusal(queue_id, one.seq, one.token, now, ordered=ordered)
        if refusal:
            return refusal
        row = self.rows[one.seq]
        if one.outcome is Outcome.RETRY:
            self.rows[one.seq] = replace(row, available_at=one.available_at, token=None)
            return DONE
        del self.rows[one.seq]
        if one.target:
            self._dead_letter(row, one.target, now, after, one.failure)
        for new_delivery in one.follow_ups:
            self._add(_delivery_of(new_delivery, self._of_body(after, new_delivery.body).seq))
        return DONE

    def extend(self, queue_id: int, claim: Claim, now: int, *, ordered: bool) -> Settled:
        """A claim holds longer, or no longer."""
        seq, token, until = claim
        refusal = self.refusal(queue_id, seq, token, now, ordered=ordered)
        if refusal is None:
            row = self.rows[seq]
            keeps = until > now or ordered
            self.rows[seq] = replace(row, available_at=until if keeps else min(row.enqueued_at, until))
        return refusal or DONE

    # ---- leaving ----------------------------------------------------------------------------------------

    def move(self, request: MoveRequest, answer: Moved, after: Rows) -> None:
        """Deliveries were moved; `after` is what all queues hold now."""
        before = {row.seq: row for row in self.queue(request.queue_id)}
        gone = [row for row in before.values() if row.seq not in after]
        assert answer.total == len(gone) <= request.limit
        assert all(self._movable(row, request) for row in gone)
        if request.destination:
            self._took_the_first(gone, before, request.now, ordered=request.ordered)
        for row in gone:
            del self.rows[row.seq]
        for row in gone:
            target = request.destination or request.origins[row.origin or 0]
            fresh = self._of_body(after, row.body)
            assert fresh.message_id in request.message_ids
            self.rows[fresh.seq] = as_redriven(row, target.queue_id, fresh.seq, request.now, fresh.message_id)
        if request.ordered:
            self._kept_order(gone, after)
        if not answer.has_more:
            assert not [row for row in self._line(request) if self._movable(row, request)]

    def _movable(self, row: Delivery, request: MoveRequest) -> bool:
        known = request.destination is not None or row.origin in request.origins
        return known and row.available_at <= request.now and row.seq <= request.seq_max

    def purge(self, queue_id: int, seq_max: int, limit: int) -> int:
        """The oldest are removed."""
        return self._remove(row for row in self.queue(queue_id)[:limit] if row.seq <= seq_max)

    def delay(self, queue_id: int, delay_ms: int, after_seq: int, limit: int) -> int | None:
        """Deliveries that nobody has claimed yet wait so long from their arrival."""
        page = [row for row in self.queue(queue_id) if row.seq > after_seq][:limit]
        for row in page:
            if row.attempts == 0 and row.token is None:
                self.rows[row.seq] = replace(row, available_at=row.enqueued_at + delay_ms)
        return page[-1].seq if page else None

    def sweep(self, queue_id: int, enqueued_before: int, limit: int) -> int:
        """Among the oldest, those out of their retention period are removed."""
        return self._remove(row for row in self.queue(queue_id)[:limit] if row.enqueued_at <= enqueued_before)

    def _remove(self, rows: Iterable[Delivery]) -> int:
        seqs = [row.seq for row in rows]
        for seq in seqs:
            del self.rows[seq]
        return len(seqs)


def _delivery_of(new_delivery: NewDelivery, seq: int) -> Delivery:
    return Delivery(
        queue_id=new_delivery.queue_id,
        seq=seq,
        available_at=new_delivery.available_at,
        attempts=0,
        token=None,
        enqueued_at=new_delivery.enqueued_at,
        sent_at=new_delivery.enqueued_at,
        first_claimed_at=None,
        message_id=new_delivery.message_id,
        group_id=new_delivery.group_id,
        deduplication_id=new_delivery.deduplication_id,
        origin=None,
        headers=new_delivery.headers,
        body=new_delivery.body,
    )
