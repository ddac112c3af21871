"""The options of a run, drawn from its seed.

Swarm testing: every run switches some troubles off and turns others up. A run in which everything goes wrong at once
never gets far enough to meet the rare ones, and one in which little goes wrong never meets two at a time.
"""

import random
from dataclasses import dataclass, replace

from tests.simulation.subscribers import TopicPlan, draw_topics

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


@dataclass(frozen=True)
class FaultInjection:
    """Faults between the nodes and the store; shares are of calls.

    Attributes:
        latency_ms_max: Of the way to the store, and of the way back.
        hung: Takes up to `HANG_MS_MAX` to arrive, and is carried out then, long after its `now`.
        request_lost: Never arrives.
        answer_lost: Is carried out, and nobody hears of it.
        death_before: The node dies, and the call never leaves.
        death_after: The call is carried out, and the node dies.
        news_ms_max: How late the nodes hear of each other's changes.
        news_lost: Share of news that is lost, with what follows until the connection stands again.
    """

    latency_ms_max: int = 0
    hung: float = 0
    request_lost: float = 0
    answer_lost: float = 0
    death_before: float = 0
    death_after: float = 0
    news_ms_max: int = 5
    news_lost: float = 0


CALM = FaultInjection()
OUTAGE_MS_MAX = 1_500  # half the leases of attempts here
HANG_MS_MAX = 40_000  # longer than the leases here, and than a move task's


@dataclass(frozen=True)
class Manners:
    """The consumers' behaviour; shares are of the messages they receive.

    Attributes:
        slow: Work that takes up to three leases, and is settled late.
        given_back: Not wanted, given back at once.
        extended: Held longer than the lease, in time.
        forgotten: Never settled.
        hung_up: Receives given up while they wait.
        repeated: Receives of an ordered queue that carry an attempt id, and use it again when they fail.
    """

    slow: float = 0
    given_back: float = 0
    extended: float = 0
    forgotten: float = 0
    hung_up: float = 0
    repeated: float = 0


DILIGENT = Manners()


@dataclass(frozen=True)
class QueuePlan:
    """One queue, its dead-letter queue, and how busy it is.

    Attributes:
        name: Its dead letters are at `dead_letters`, unless that is empty.
        groups: How many message groups; 0: none.
        attempts_max: Claims before a message is a dead letter.
        delays: Share of messages with a delay of their own.
    """

    name: str
    ordered: bool
    groups: int
    dead_letters: str
    attempts_max: int
    delay_ms: int
    lease_ms: int
    retention_ms: int
    deduplicates_per_group: bool
    deduplicates_content: bool
    delays: float
    messages: int
    consumers: int


@dataclass(frozen=True)
class Options:
    """One run.

    Attributes:
        duration_ms: How long the faults last.
        death_ms: Mean time between deaths of nodes out of the blue; 0: none.
        skew_ms_max: How far a node's clock may be off.
        clock_steps: Whether clocks are set right (or wrong) meanwhile.
        redrive_ms: Mean time between move tasks; 0: none.
        purge_ms: Mean time between purges; 0: none.
        relabel_ms: Mean time between changes of a queue's tags; 0: none.
        configure_ms: Mean time between an administrator's calls; 0: there are none.
        outage_ms: Mean time until the store is away again, for up to `OUTAGE_MS_MAX`, when it has been there for a
            lease; 0: it always is. Where it goes away calls go well otherwise, and clocks are right, so that it can be
            told what that alone leads to.
    """

    seed: int
    duration_ms: int
    faults: FaultInjection
    manners: Manners
    queues: tuple[QueuePlan, ...]
    topics: tuple[TopicPlan, ...]
    death_ms: int
    skew_ms_max: int
    clock_steps: bool
    redrive_ms: int
    purge_ms: int
    relabel_ms: int
    outage_ms: int = 0
    configure_ms: int = 0

    @property
    def dialects(self) -> set[str]:
        """Those of its topics."""
        return {topic.dialect for topic in self.topics}


def draw(seed: int) -> Options:
    """The options of a seed."""
    rng = random.Random(f"options {seed}")
    queues = _queues(rng)
    drawn = Options(
        seed=seed,
        duration_ms=rng.choice((20_000, 20_000, MINUTE_MS, MINUTE_MS, MINUTE_MS, 6 * MINUTE_MS)),
        faults=_faults(rng),
        manners=_manners(rng),
        queues=queues,
        topics=draw_topics(
            rng,
            [queue.name for queue in queues if not queue.ordered],
            [queue.name for queue in queues if queue.ordered],
        ),
        death_ms=rng.choice((0, 40_000, 10_000)),
        skew_ms_max=rng.choice((0, 0, 200, 5_000)),
        clock_steps=rng.random() < 0.3,
        redrive_ms=rng.choice((0, 30_000, 5_000)),
        purge_ms=rng.choice((0, 0, 0, 60_000)),
        relabel_ms=rng.choice((0, 10_000)),
    )
    if rng.random() >= 0.75:
        drawn = _with_outages(drawn)
    return replace(drawn, configure_ms=rng.choice((0, 0, 2_000)))


def _with_outages(drawn: Options) -> Options:
    calm = replace(
        drawn.faults, latency_ms_max=5, hung=0, request_lost=0, answer_lost=0, death_before=0, death_after=0
    )
    return replace(drawn, faults=calm, skew_ms_max=0, clock_steps=False, outage_ms=1_000)


def _faults(rng: random.Random) -> FaultInjection:
    return FaultInjection(
        latency_ms_max=rng.choice((0, 5, 50, 1_000)),
        hung=rng.choice((0, 0, 0.005, 0.03)),
        request_lost=rng.choice((0, 0.01, 0.1)),
        answer_lost=rng.choice((0, 0.01, 0.1)),
        death_before=rng.choice((0, 0, 0.01)),
        death_after=rng.choice((0, 0, 0.01)),
        news_ms_max=rng.choice((5, 500)),
        news_lost=rng.choice((0, 0, 0.05)),
    )


def _manners(rng: random.Random) -> Manners:
    return Manners(
        slow=rng.choice((0, 0.3, 0.3, 0.6)),
        given_back=rng.choice((0, 0.1, 0.3)),
        extended=rng.choice((0, 0.2)),
        forgotten=rng.choice((0, 0.1, 0.3)),
        hung_up=rng.choice((0, 0.2)),
        repeated=rng.choice((0, 1)),
    )


def _queues(rng: random.Random) -> tuple[QueuePlan, ...]:
    """One queue, or two of a kind that share their dead-letter queue, or two that have nothing in common."""
    kinds = rng.choice(((False,), (True,), (False, False), (True, True), (True, True), (False, True)))
    shared = len(set(kinds)) < len(kinds) and rng.random() < 0.7
    return tuple(
        _queue(rng, f"q{number}", "dead" if shared else f"dead{number}", ordered=ordered)
        for number, ordered in enumerate(kinds)
    )


def _queue(rng: random.Random, name: str, dead_letters: str, *, ordered: bool) -> QueuePlan:
    return QueuePlan(
        name=name,
        ordered=ordered,
        groups=rng.choice((1, 2, 5)) if ordered else rng.choice((0, 0, 3)),
        dead_letters=dead_letters if rng.random() < 0.8 else "",
        attempts_max=rng.choice((1, 2, 3, 6)),
        delay_ms=rng.choice((0, 0, 3_000)),
        lease_ms=rng.choice((500, 2_000, 10_000)),
        retention_ms=rng.choice((4 * DAY_MS, 4 * DAY_MS, 4 * DAY_MS, MINUTE_MS)),
        deduplicates_per_group=rng.random() < 0.5,
        deduplicates_content=rng.random() < 0.3,
        delays=0 if ordered else rng.choice((0, 0.3)),
        messages=rng.randint(10, 30),
        consumers=rng.randint(2, 4),
    )
