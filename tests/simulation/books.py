"""The books: every delivery there is, entered as the store does its work, and each entry held against the rules.

The store carries out one call at a time, so the books know the true order of events, and who held what when. They
know nothing of turns, indexes or SQL: only which deliveries stand where, under which token, until when.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redrive.engine.configuration.topics import SUBSCRIPTION
from redrive.engine.ports import (
    Change,
    ClaimRequest,
    ClaimResult,
    Enqueued,
    Moved,
    MoveRequest,
    NewDelivery,
    OrderedPublication,
    Put,
    Remove,
    Settled,
    Settlement,
)
from redrive.engine.push.circuit_breakers import CIRCUIT
from redrive.engine.tasks.redrive import TASK
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.model.topic import Subscription
from tests.simulation.backlogs import Backlog
from tests.simulation.entry import Entry, Snapshot, entered
from tests.simulation.memories import Memories
from tests.simulation.outside import Seen
from tests.simulation.rules import Rule, require
from tests.simulation.tasks import Tasks
from tests.simulation.trace import Trace, short


@dataclass
class Books:
    """The expected content of the store.

    Attributes:
        now: The true time (ms).
        skew_ms: How much the clocks of two nodes may differ.
        patience_ms: The same, and how late a call may arrive.
        outages: See Backlog.
        seen: What each endpoint saw, by the id of its subscription.
        standing: By place.
        left: How each delivery that stands nowhere any more went, by place.
        bodies: By place, of all that ever stood anywhere.
        claims: The places that each token was given for.
        entered: Which body ever stood in which queue.
        backlogs: The queues that Redrive itself empties.
        purges: The queues that somebody wanted emptied.
        excused: Bodies of messages that expired or were purged.
        moved: How many left each queue by a redrive.
    """

    trace: Trace
    now: Callable[[], int]
    skew_ms: int
    patience_ms: int
    outages: bool = False
    seen: Mapping[str, Seen] = field(default_factory=dict)
    queues: dict[int, Queue] = field(default_factory=dict)
    standing: dict[int, Entry] = field(default_factory=dict)
    left: dict[int, str] = field(default_factory=dict)
    bodies: dict[int, str] = field(default_factory=dict)
    claims: dict[int, set[int]] = field(default_factory=dict)
    entered: set[tuple[int, str]] = field(default_factory=set)
    backlogs: dict[int, Backlog] = field(default_factory=dict)
    purges: set[int] = field(default_factory=set)
    excused: set[str] = field(default_factory=set)
    moved: dict[int, int] = field(default_factory=dict)
    _memories: Memories = field(init=False)
    _backlog_of: dict[str, Backlog] = field(default_factory=dict)  # by the subscription's key
    _tasks: Tasks = field(init=False)
    _last_seq: int = 0

    def __post_init__(self) -> None:
        self._tasks = Tasks(self.trace)
        self._memories = Memories(self.patience_ms)

    def enter(self, verb: str, args: tuple[Any, ...], answer: Any, after: Snapshot) -> None:
        """A call was carried out; `after` holds what is now in the queues it disturbed."""
        match verb, args:
            case "enqueue", (new_deliveries,):
                self._enqueue(new_deliveries, answer)
            case "publish", (publications,):
                self._publish(publications, answer, after)
            case "claim", (request,):
                self._claim(request, answer, after)
            case "settle", (queue_id, settlements, now):
                self._settle(queue_id, settlements, now, answer, after)
            case "extend", (queue_id, claims, now):
                self._extend(queue_id, claims, now, answer)
            case "move" | "purge" | "sweep", _:
                self._take_away(verb, args, answer, after)
            case "write", (changes, new_deliveries, *_):
                self._write(changes, new_deliveries, after)

    # ---- arriving ----------------------------------------------------------------------------------------

    def _enqueue(self, new_deliveries: Sequence[NewDelivery], answers: Sequence[Enqueued]) -> None:
        for new_delivery, answer in zip(new_deliveries, answers, strict=True):
            at = new_delivery.queue_id, new_delivery.deduplication_key
            if self._memories.repeats(at, answer, new_delivery.enqueued_at, new_delivery.deduplicate_until):
                self.trace.mark("deduplicated")
                continue
            self._add(
                Entry(
                    *(
                        new_delivery.queue_id,
                        answer.seq,
                        new_delivery.message_id,
                        new_delivery.body,
                        new_delivery.group_id,
                    ),
                    *(new_delivery.enqueued_at, new_delivery.available_at),
                )
            )

    def _publish(
        self, publications: Sequence[OrderedPublication], answers: Sequence[Enqueued], after: Snapshot
    ) -> None:
        arrived = [entry for queue_id in after for entry in self._unknown(queue_id, after)]
        wanted = 0
        for publication, answer in zip(publications, answers, strict=True):
            if self._memories.repeats(
                (publication.topic_id, publication.key), answer, publication.now, publication.until
            ):
                self.trace.mark("a publication deduplicated")
                continue
            for new_delivery in publication.new_deliveries:
                copies = [one for one in arrived if one.message_id == new_delivery.message_id]
                require(
                    len(copies) == 1 and copies[0].body == new_delivery.body,
                    Rule.WANTED,
                    new_delivery.body,
                    copies,
                )
            wanted += len(publication.new_deliveries)
        require(len(arrived) == wanted, Rule.AGREES, *arrived, "for", wanted)
        self._enter_all(arrived)

    def _add(self, entry: Entry, *, wanted: bool = True) -> None:
        require(entry.seq > self._last_seq, Rule.ORDER, entry, "got a place that is not the last")
        copies = [str(other) for other in self.standing.values() if other.message_id == entry.message_id]
        require(not copies, Rule.BURIED, entry, "stands elsewhere:", copies)
        self._last_seq = entry.seq
        if wanted:
            self._check_wanted(entry)
        self.standing[entry.seq] = entry
        self.bodies[entry.seq] = entry.body
        self.entered.add((entry.queue_id, entry.body))

    def _check_wanted(self, entry: Entry) -> None:
        """Of what is published, only what somebody wants enters a queue, and each backlog only what its own does."""
        backlog, queue = self.backlogs.get(entry.queue_id), self.queues.get(entry.queue_id)
        if backlog is not None:
            require(backlog.plan.wants(entry.body), Rule.FILTERED, entry, "for", backlog.plan.name)
        elif queue is not None:
            plans = [one.plan for one in self.seen.values() if one.plan.queue == queue.name.name]
            fed = [plan for plan in plans if entry.body.startswith(f"{plan.topic}-")]
            require(not fed or any(plan.wants(entry.body) for plan in fed), Rule.FILTERED, entry)

    # ---- claiming ----------------------------------------------------------------------------------------

    def _claim(self, request: ClaimRequest, answer: ClaimResult, after: Snapshot) -> None:
        if after:
            self._sort_out(request, answer, after)
        if request.queue_id in self.backlogs:
            self.backlogs[request.queue_id].claim(request, len(answer.deliveries))
        for delivery in answer.deliveries:
            entry = self.standing.get(delivery.seq)
            if entry is None:
                how = self.left.get(delivery.seq, "was never there")
                require(False, Rule.BACK, delivery.seq, delivery.body, how)
            elif delivery.token == request.token:
                self._hand_out(request, entry, delivery)
            else:
                self._hand_out_again(request, entry, delivery)

    def _hand_out(self, request: ClaimRequest, entry: Entry, delivery: Delivery) -> None:
        queue = self.queues[entry.queue_id]
        require(
            entry.available_at <= request.now, Rule.EARLY, entry, "at", request.now, "due", entry.available_at
        )
        resumed = request.resumes and entry.token is not None
        attempts = entry.attempts + (0 if resumed else 1)
        require(delivery.attempts == attempts, Rule.COUNTED, entry, "came as", delivery.attempts)
        attempts_max = self._attempts_max(queue)
        require(attempts <= attempts_max, Rule.EXHAUSTED, entry, "of", attempts_max)
        self.trace.mark("an attempt made again by another node", resumed)
        if resumed:
            self.backlogs[entry.queue_id].resume(entry, self.now())
        require(not self._expired(entry, request.now), Rule.EXPIRED, entry, "was handed out")
        if queue.ordered:
            self._keeps_order(request, entry)
        self.claims.setdefault(request.token, set()).add(entry.seq)
        entry.attempts = attempts
        entry.token = request.token
        entry.claimed_at = request.now
        entry.available_at = request.now + request.lease_ms
        require(
            delivery.available_at == entry.available_at, Rule.HOLDS, entry, "until", delivery.available_at
        )

    def _attempts_max(self, queue: Queue) -> float:
        if queue.id in self.backlogs:
            return 1 + len(self.backlogs[queue.id].plan.waits_ms)
        return math.inf if queue.dead_letter is None else queue.dead_letter.attempts_max

    def _keeps_order(self, request: ClaimRequest, entry: Entry) -> None:
        """All older ones of the group left or come along, and no younger one is in flight on its own account."""
        for other in self._group(entry):
            if other.seq < entry.seq:
                require(other.token == request.token, Rule.ORDER, entry, "overtakes", other)
            elif (
                other.token is not None and other.available_at > request.now and other.token != request.token
            ):
                require(entry.retimed or other.retimed, Rule.TOGETHER, entry, "while", other, "is in flight")
                self.trace.mark("a group in two hands, as its holder wished")

    def _group(self, entry: Entry) -> list[Entry]:
        return [
            other
            for other in self.standing.values()
            if other.group_id == entry.group_id and other.queue_id == entry.queue_id and other is not entry
        ]

    def _hand_out_again(self, request: ClaimRequest, entry: Entry, delivery: Delivery) -> None:
        """A receiver that did not hear the answer asked for the same claim once more."""
        require(request.attempt_id, Rule.STALE, entry, "came under another claim's token")
        require(entry.token == delivery.token, Rule.STALE, entry, "came as", short(delivery.token))
        require(entry.available_at > request.now, Rule.STALE, entry, "came again after its claim ran out")
        require(delivery.attempts == entry.attempts, Rule.COUNTED, entry, "came again as", delivery.attempts)
        entry.available_at = request.now + request.lease_ms
        entry.retimed = True
        self.trace.mark("a claim repeated")

    def _sort_out(self, request: ClaimRequest, answer: ClaimResult, after: Snapshot) -> None:
        """Check and enter the deliveries that a claim found expired or exhausted on its way."""
        gone = self._missing(request.queue_id, after)
        dead = [entry for entry in gone if not self._expired(entry, request.now)]
        require(len(gone) - len(dead) == answer.expired, Rule.EXPIRED, answer.expired, "of", *gone)
        require(len(dead) == answer.dead_lettered, Rule.LOST, answer.dead_lettered, "dead letters:", *dead)
        for entry in gone:
            require(entry.available_at <= request.now, Rule.EARLY, entry, "was taken away from its holder")
            self._leave(entry, "dead-lettered" if entry in dead else "expired")
        attempts_max = self._attempts_max(self.queues[request.queue_id])
        for entry in dead:
            require(entry.attempts >= attempts_max, Rule.EXHAUSTED, entry, "was given up too early")
        if dead and request.dead_letters_to is not None:
            arrived = self._unknown(request.dead_letters_to.queue_id, after)
            for entry in sorted(dead, key=lambda entry: entry.seq):
                self._buried(entry, arrived)
            self._enter_all(arrived)

    def _buried(self, entry: Entry, arrived: Sequence[Entry]) -> None:
        copies = [one for one in arrived if one.message_id == entry.message_id]
        require(len(copies) == 1 and copies[0].body == entry.body, Rule.BURIED, entry, "is there as", copies)
        require(copies[0].origin == entry.queue_id, Rule.BURIED, entry, "comes from", copies[0].origin)

    # ---- settling ----------------------------------------------------------------------------------------

    def _settle(
        self,
        queue_id: int,
        settlements: Sequence[Settlement],
        now: int,
        answers: Sequence[Settled],
        after: Snapshot,
    ) -> None:
        arrived = [entry for queue in after for entry in self._unknown(queue, after)]
        wanted = 0
        for one, answer in zip(settlements, answers, strict=True):
            entry = self._accepted(queue_id, one.seq, one.token, now, answer)
            if entry is not None and queue_id in self.backlogs:
                wanted += self._end_attempt(entry, one, now, arrived)
            elif entry is not None:
                self._leave(entry, "deleted")
        require(len(arrived) == wanted, Rule.LED, *arrived, "for", wanted)
        self._enter_all(arrived)

    def _end_attempt(self, entry: Entry, one: Settlement, now: int, arrived: Sequence[Entry]) -> int:
        """An endpoint took it, or did not; how many deliveries this end led to, which are among the arrived."""
        backlog = self.backlogs[entry.queue_id]
        how = backlog.end_attempt(entry, one, now)
        backlog.follow_ups(how, entry, one)
        if not how:
            entry.available_at, entry.token = one.available_at, None
            return 0
        self._leave(entry, how)
        if one.target is not None:
            self._buried(entry, arrived)
        for letter in one.follow_ups:
            copies = [other for other in arrived if other.message_id == letter.message_id]
            require(len(copies) == 1, Rule.LED, entry, how, "but there are", copies)
        return len(one.follow_ups) + (one.target is not None)

    def _extend(
        self, queue_id: int, claims: Sequence[tuple[int, int, int]], now: int, answers: Sequence[Settled]
    ) -> None:
        for (seq, token, until), answer in zip(claims, answers, strict=True):
            entry = self._accepted(queue_id, seq, token, now, answer)
            if entry is not None:
                keeps = until > now or self.queues[queue_id].ordered
                entry.available_at = until if keeps else min(entry.enqueued_at, until)
                entry.retimed = True
                self.trace.mark("given back" if until <= now else "extended")

    def _accepted(self, queue_id: int, seq: int, token: int, now: int, answer: Settled) -> Entry | None:
        """The delivery whose token was accepted, or None where it was right to be refused."""
        entry, ordered = self.standing.get(seq), self.queues[queue_id].ordered
        holds = entry is not None and entry.token == token and not (ordered and entry.available_at <= now)
        if not answer.done:
            require(not holds, Rule.HOLDS, entry, "was refused:", answer.reason)
            self.trace.mark(f"refused: {answer.reason}")
            return None
        require(holds, Rule.STALE, short(token), "for", entry or f"#{seq}, {self.left.get(seq)}")
        if entry is not None and entry.available_at <= now:
            self.trace.mark("late, but nobody had begun anew")
        return entry

    # ---- leaving -----------------------------------------------------------------------------------------

    def _take_away(self, verb: str, args: tuple[Any, ...], answer: Any, after: Snapshot) -> None:
        match verb, args:
            case "move", (request,) if answer.total:
                self._move(request, answer, after)
            case "purge", (queue_id, seq_max, _) if answer:
                self._purge(queue_id, seq_max, answer, after)
            case "sweep", (queue_id, _, now, _) if answer.deliveries:
                self._sweep(queue_id, now, answer.deliveries, after)

    def _move(self, request: MoveRequest, answer: Moved, after: Snapshot) -> None:
        gone = self._missing(request.queue_id, after)
        arrived = [entry for queue_id in answer.per_queue for entry in self._unknown(queue_id, after)]
        require(
            sorted(e.body for e in gone) == sorted(e.body for e in arrived),
            Rule.MOVED,
            gone,
            "became",
            arrived,
        )
        require(len(gone) == answer.total <= request.limit, Rule.MOVED, answer, "but", len(gone))
        ids = {entry.message_id for entry in arrived}
        require(ids <= set(request.message_ids), Rule.MOVED, "with ids that nobody gave")
        for entry in gone:
            movable = entry.available_at <= request.now and entry.seq <= request.seq_max
            require(movable, Rule.MOVED, entry, "though it was in flight, or came later")
            self._leave(entry, "moved")
        self._enter_all(arrived, wanted=request.destination is None)  # anything may be sent anywhere
        self.moved[request.queue_id] = self.moved.get(request.queue_id, 0) + answer.total
        self.trace.mark("redriven to several origins at once", len(answer.per_queue) > 1)

    def _purge(self, queue_id: int, seq_max: int, number: int, after: Snapshot) -> None:
        gone = self._missing(queue_id, after)
        require(len(gone) == number, Rule.PURGED, number, "but", *gone)
        require(queue_id in self.purges, Rule.PURGED, "nobody asked for queue", queue_id)
        for entry in gone:
            require(entry.seq <= seq_max, Rule.PURGED, entry, "came later than", seq_max)
            self._leave(entry, "purged")

    def _sweep(self, queue_id: int, now: int, number: int, after: Snapshot) -> None:
        gone = self._missing(queue_id, after)
        require(len(gone) == number, Rule.EXPIRED, number, "but", *gone)
        for entry in gone:
            require(self._expired(entry, now), Rule.EXPIRED, entry, "was swept away")
            self._leave(entry, "expired")

    # ---- documents ---------------------------------------------------------------------------------------

    def _write(
        self, changes: Sequence[Change], new_deliveries: Sequence[NewDelivery], after: Snapshot
    ) -> None:
        for change in changes:
            match change:
                case Put():
                    self._put(change)
                case Remove(CIRCUIT.name, key) if key in self._backlog_of:
                    self._backlog_of[key].rests(None, self.now())
        arrived = [entry for queue_id in after for entry in self._unknown(queue_id, after)]
        ids = [sorted(one.message_id for one in them) for them in (arrived, new_deliveries)]
        require(ids[0] == ids[1], Rule.AGREES, *arrived, "for", *new_deliveries)
        self._enter_all(arrived)

    def _put(self, put: Put) -> None:
        if put.kind == SUBSCRIPTION.name:
            self._put_subscription(SUBSCRIPTION.read(put.document))
        elif put.kind == CIRCUIT.name:
            self._backlog_of[put.key].rests(CIRCUIT.read(put.document), self.now())
        elif put.kind == TASK.name:
            self._tasks.put(put)

    def _put_subscription(self, subscription: Subscription) -> None:
        if subscription.id not in self.seen:  # an administrator's, which nothing is published to
            return
        queue_id = subscription.queue_id
        ordered = subscription.attributes["ordered"] == "true"
        self.queues[queue_id] = Queue(queue_id, subscription.topic, ordered=ordered, retention_ms=10**15)
        if queue_id not in self.backlogs:
            backlog = Backlog(self.seen[subscription.id], self.skew_ms, self.trace, self.outages)
            self.backlogs[queue_id] = self._backlog_of[subscription.key] = backlog

    # ---- the whole ---------------------------------------------------------------------------------------

    def agree(self, queue_id: int, there: Sequence[Delivery]) -> None:
        """Hold the books of one queue against what the store shows."""
        after = {queue_id: there}
        missing, unknown = self._missing(queue_id, after), self._unknown(queue_id, after)
        require(not missing, Rule.LOST, *missing, "went, nobody knows how")
        require(not unknown, Rule.AGREES, *unknown, "came, nobody knows how")
        for delivery in there:
            entry = self.standing[delivery.seq]
            if entry.group_id is not None and not self.queues[queue_id].ordered:
                # A fair queue lets the next of a group stand at the end of the line when its turn comes.
                entry.available_at = max(entry.available_at, delivery.available_at)
            books, store = (
                (one.available_at, one.attempts, one.token, one.body, one.message_id)
                for one in (entry, delivery)
            )
            require(books == store, Rule.AGREES, entry, books, "but", store)

    def _missing(self, queue_id: int, after: Snapshot) -> list[Entry]:
        seqs = {delivery.seq for delivery in after[queue_id]}
        return [one for one in self.standing.values() if one.queue_id == queue_id and one.seq not in seqs]

    def _unknown(self, queue_id: int, after: Snapshot) -> list[Entry]:
        return [entered(one) for one in after[queue_id] if one.seq not in self.standing]

    def _enter_all(self, entries: Sequence[Entry], *, wanted: bool = True) -> None:
        for entry in sorted(entries, key=lambda entry: entry.seq):
            self._add(entry, wanted=wanted)

    def _expired(self, entry: Entry, now: int) -> bool:
        return entry.enqueued_at + self.queues[entry.queue_id].retention_ms <= now

    def _leave(self, entry: Entry, how: str) -> None:
        del self.standing[entry.seq]
        self.left[entry.seq] = how
        self.trace.mark(how)
        if how in ("expired", "overdue", "purged"):
            self.excused.add(entry.body)
