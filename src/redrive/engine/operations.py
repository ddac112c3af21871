"""Operations: the part of the door through which an operator, or a facade for one, steps in."""

from collections.abc import Iterator, Mapping

from redrive.engine.configuration.dead_letter_sources import SCOPES_MAX, LetterOrigin
from redrive.engine.node.memory import METRIC_NAMES, QueueCounters, failed_on_purpose
from redrive.engine.parts import EngineParts
from redrive.engine.push.circuit_breakers import Failing
from redrive.engine.push.conditions import EndpointCondition, EndpointState
from redrive.engine.tasks.dead_letters import BATCH_MAX, SET_ASIDE, CauseDetails, DeadLetter, DeadLetterQueue
from redrive.engine.tasks.leased_tasks import LEASE_MS, LeasedTasks
from redrive.engine.tasks.redrive import TASK
from redrive.engine.tasks.redrive_plan import RedrivePlan, RedriveWish
from redrive.engine.tracing import Trace, TracedDelivery
from redrive.model.attempt import Attempt
from redrive.model.circuit import OpenCircuit
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

__all__ = [
    "BATCH_MAX",
    "LEASE_MS",
    "METRIC_NAMES",
    "SCOPES_MAX",
    "SET_ASIDE",
    "TASK",
    "CauseDetails",
    "DeadLetter",
    "DeadLetterQueue",
    "EndpointCondition",
    "EndpointState",
    "LeasedTasks",
    "LetterOrigin",
    "Operations",
    "RedrivePlan",
    "RedriveWish",
    "Trace",
    "TracedDelivery",
]


class Operations:
    """Redrive tasks, replays, dead letters, circuit breakers and fault injection.

    Attributes:
        start_redrive: Begins to move a dead-letter queue's messages as a task (`Redriver.start`).
        cancel_redrive: Asks a redrive task to stop (`Redriver.cancel`).
        redrive_tasks: The tasks of a source, latest first (`Redriver.tasks_of`).
        active_redrives: How many tasks of an account are running (`Redriver.active_tasks`).
        plan_redrive: Counts what a task would move, and moves nothing (`Redriver.plan`).
        pause_redrive: Asks a task to pause (`Redriver.pause`).
        resume_redrive: Lets a paused task go on (`Redriver.resume`).
        move: Moves chosen dead letters at once (`ChosenMoves.move`).
        set_aside, bring_back: Put them aside as they are, and back (`ChosenMoves`).
        aside_of: The queue for what is set aside (`ChosenMoves.aside_of`).
        dead_letter_queues: Of an account's region (`DeadLetters.queues`).
        dead_letter_queues_of: Of several accounts and regions at once (`DeadLetters.queues_of`).
        dead_letter_targets: The names of those of an account's region, without a count (`DeadLetters.targets`).
        scopes: The accounts and regions that have queues or topics (`DeadLetters.scopes`).
        dead_letters: What is in one of them (`DeadLetters.letters`).
        look: A page of one, either way, or of one cause (`DeadLetters.look`).
        peek_page: The same of any queue, without origins and attempts (`DeadLetters.peek`).
        letters_of: Deliveries with their origins and attempts (`DeadLetters.of`).
        origin: The queue or subscription that dead letters of a number came from (`DeadLetters.origin`).
        current_redrive_tasks: The tasks of all accounts that have not ended, or failed lately (`Redriver.current`).
        causes: Why its messages died, with numbers (`DeadLetters.causes`).
        cause_counts, ends, causes_of: The same in steps, for who looks at messages besides (`DeadLetters`).
        sources: Who sends to one (`DeadLetters.sources`).
        trace: Where a message's deliveries stand (`Tracer.trace`).
        start_replay_in: Sends a subscription what its topic archived (`Replayer.start_in`).
        end_replay_in: Takes a replay away (`Replayer.end_in`).
        replay_of, replay_of_in: A subscription's replay, under way or ended (`Replayer.of`).
        close_circuit: Serves an endpoint again, at once (`Dispatcher.close_circuit`).
        next_attempt_at: When a delivery is tried next on this node (`Dispatcher.next_at`).
        condition: How a subscription's endpoint stands (`EndpointConditions.of`).
        conditions: The same of several at once (`EndpointConditions.of_each`).
        is_set_up: Whether this server can push to endpoints of a kind (`EndpointConditions.is_set_up`).
        schedule_of: The retry schedule of a subscription (`EndpointConditions.schedule_of`).
    """

    def __init__(self, parts: EngineParts) -> None:
        self._circuits = parts.circuits
        self._faults = parts.faults
        self._measure = parts.counters
        self._replayer = parts.replayer
        self._sweeper = parts.sweeper
        self.start_redrive = parts.redriver.start
        self.cancel_redrive = parts.redriver.cancel
        self.redrive_tasks = parts.redriver.tasks_of
        self.active_redrives = parts.redriver.active_tasks
        self.plan_redrive = parts.redriver.plan
        self.pause_redrive = parts.redriver.pause
        self.resume_redrive = parts.redriver.resume
        self.move = parts.chosen.move
        self.set_aside = parts.chosen.set_aside
        self.bring_back = parts.chosen.bring_back
        self.aside_of = parts.chosen.aside_of
        self.dead_letter_queues = parts.dead_letters.queues
        self.dead_letter_queues_of = parts.dead_letters.queues_of
        self.scopes = parts.dead_letters.scopes
        self.dead_letter_targets = parts.dead_letters.targets
        self.dead_letters = parts.dead_letters.letters
        self.look = parts.dead_letters.look
        self.letters_of = parts.dead_letters.of
        self.peek_page = parts.dead_letters.peek
        self.origin = parts.dead_letters.origin
        self.current_redrive_tasks = parts.redriver.current
        self.causes = parts.dead_letters.causes
        self.cause_counts = parts.dead_letters.cause_counts
        self.ends = parts.dead_letters.ends
        self.causes_of = parts.dead_letters.causes_of
        self.sources = parts.dead_letters.sources
        self.trace = parts.tracer.trace
        self.start_replay_in = parts.replayer.start_in
        self.end_replay_in = parts.replayer.end_in
        self.replay_of = parts.replayer.of
        self.replay_of_in = parts.replayer.of_in
        self.close_circuit = parts.dispatcher.close_circuit
        self.next_attempt_at = parts.dispatcher.next_at
        self.condition = parts.conditions.of
        self.conditions = parts.conditions.of_each
        self.is_set_up = parts.conditions.is_set_up
        self.schedule_of = parts.conditions.schedule_of

    async def drop_archive(self, topic: Topic) -> None:
        """Remove all that a topic has archived, once it archives no more; replays from there fail."""
        await self._sweeper.purge(topic.id)
        await self._replayer.round()

    async def circuit(self, subscription: Subscription) -> OpenCircuit | None:
        """The open circuit breaker of a subscription's endpoint; None: closed."""
        return await self._circuits.of(subscription)

    async def open_circuits(self) -> Mapping[str, OpenCircuit]:
        """Every circuit breaker that is open, by its subscription's key."""
        return await self._circuits.all()

    @property
    def failing(self) -> Mapping[str, Failing]:
        """The rows of failures that endpoints are in as far as this node has seen, by their subscriptions' keys."""
        return self._circuits.rows_of_failures

    async def sweep(self) -> int:
        """Sweep every queue once, and take away what falls due; how many deliveries went."""
        return await self._sweeper.round()

    def counts(self, queue: Queue) -> QueueCounters:
        """The counts of a queue on this node since its start."""
        return self._measure.queue(queue)

    def queue_counts(self) -> Iterator[QueueCounters]:
        """The counts of each queue to which something happened on this node since its start."""
        return iter(self._measure)

    def inject_fault(self, endpoint: str, status: int) -> None:
        """Have every attempt at an endpoint end as if it answered with this status, from now on."""
        self._faults.set(endpoint, failed_on_purpose(status))

    def fault_of(self, endpoint: str) -> Attempt | None:
        """The attempt that stands in for real ones at an endpoint, if one does."""
        return self._faults.of(endpoint)

    def clear_fault(self, endpoint: str) -> None:
        """Let the endpoint answer for itself again."""
        self._faults.clear(endpoint)
