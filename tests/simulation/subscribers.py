"""Topics and who subscribes to them, drawn from a run's seed: two dialects, and all that a plan can ask for.

A topic of the dialect `plain` may be ordered, and its subscribers may be queues. One of the dialect `lettered` pushes
in batches, gives up in time, is patient with slow endpoints, and writes a letter about whatever it gives up.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redrive.engine.ports import ONE_EACH, Batch
from redrive.model.circuit import CircuitPolicy

PLAIN: Final = "plain"
LETTERED: Final = "lettered"

KINDS: Final = "abc"  # of messages; the last letter of a body is its kind
LEASE_MS: Final = 3_000  # of an attempt; a slow endpoint takes longer
LETTER_DELAY_MS: Final = 2_000
RESTS: Final = CircuitPolicy(failures_max=2, first_ms=60_000, longest_ms=90_000)


@dataclass(frozen=True)
class SubscriptionPlan:
    """One subscriber of a topic; shares are of attempts.

    Attributes:
        topic: Whose messages.
        queue: The queue of this cluster that gets the messages; empty for an endpoint outside.
        kinds: What it wants; empty: everything.
        waits_ms: After each failed attempt; then it is spent.
        lives_ms: How long after its publication a message may be tried; None: for ever.
        dead_letters: Whether there is a queue for what is spent or refused.
        letters: The subscription that gets a letter about each delivery that is given up, or empty.
        broken: Answered with a server error.
        refused: Answered with a client error.
        slow: Take up to two leases.
        soft_timeout_ms: After this an attempt has failed, unless it is answered before the next; None: it is waited for.
        rests: Whether it is let rest when it fails.
        late: Subscribed while messages are published.
    """

    name: str
    topic: str
    queue: str = ""
    kinds: str = ""
    waits_ms: tuple[int, ...] = ()
    lives_ms: int | None = None
    dead_letters: bool = False
    letters: str = ""
    broken: float = 0
    refused: float = 0
    slow: float = 0
    soft_timeout_ms: int | None = None
    rests: bool = False
    batch: Batch = ONE_EACH
    rate_max: int | None = None
    concurrency_max: int = 4
    late: bool = False

    def wants(self, body: str) -> bool:
        """True if a message passes the filter."""
        return not self.kinds or body[-1] in self.kinds


@dataclass(frozen=True)
class TopicPlan:
    """A topic, and how busy it is.

    Attributes:
        dialect: In whose words its messages are delivered.
        groups: How many message groups; at least one where the topic is ordered.
        subscriptions: Who wants its messages.
        letter_boxes: Who gets letters about what was given up; nothing published reaches them.
    """

    name: str
    dialect: str
    ordered: bool
    groups: int
    messages: int
    subscriptions: tuple[SubscriptionPlan, ...]
    letter_boxes: tuple[SubscriptionPlan, ...] = ()

    @property
    def everybody(self) -> tuple[SubscriptionPlan, ...]:
        """All who are pushed to."""
        return self.subscriptions + self.letter_boxes


def draw_topics(
    rng: random.Random, queues: Sequence[str], ordered_queues: Sequence[str]
) -> tuple[TopicPlan, ...]:
    """None, one, or one of each dialect."""
    dialects = rng.choice(((), (PLAIN,), (PLAIN,), (LETTERED,), (PLAIN, LETTERED)))
    return tuple(
        _plain_topic(rng, queues, ordered_queues) if dialect == PLAIN else _lettered_topic(rng)
        for dialect in dialects
    )


def _plain_topic(rng: random.Random, queues: Sequence[str], ordered_queues: Sequence[str]) -> TopicPlan:
    ordered = rng.random() < 0.4
    fitting = ordered_queues if ordered else queues
    return TopicPlan(
        name="t",
        dialect=PLAIN,
        ordered=ordered,
        groups=rng.choice((1, 3)) if ordered else 0,
        messages=rng.randint(5, 15),
        subscriptions=tuple(_plain(rng, f"s{number}", fitting) for number in range(rng.randint(1, 3))),
    )


def _plain(rng: random.Random, name: str, fitting: Sequence[str]) -> SubscriptionPlan:
    return SubscriptionPlan(
        name=name,
        topic="t",
        queue=rng.choice(fitting) if fitting and rng.random() < 0.25 else "",
        kinds=_kinds(rng),
        waits_ms=rng.choice(((), (0, 500, 5_000), (1_000,) * 6)),
        dead_letters=rng.random() < 0.6,
        broken=rng.choice((0, 0.4, 0.9)),
        refused=rng.choice((0, 0.1)),
        slow=rng.choice((0, 0.2)),
        rests=rng.random() < 0.5,
        rate_max=rng.choice((None, None, 2)),
        concurrency_max=rng.choice((1, 4)),
        late=rng.random() < 0.3,
    )


def _lettered_topic(rng: random.Random) -> TopicPlan:
    subscriptions = tuple(_lettered(rng, f"u{number}") for number in range(rng.randint(1, 2)))
    return TopicPlan(
        name="u",
        dialect=LETTERED,
        ordered=False,
        groups=0,
        messages=rng.randint(5, 15),
        subscriptions=subscriptions,
        letter_boxes=tuple(_letter_box(rng, one.letters) for one in subscriptions if one.letters),
    )


def _lettered(rng: random.Random, name: str) -> SubscriptionPlan:
    return SubscriptionPlan(
        name=name,
        topic="u",
        kinds=_kinds(rng),
        waits_ms=rng.choice(((), (500, 500), (1_000,) * 4, (5_000, 10_000))),
        lives_ms=rng.choice((None, 5_000, 20_000)),
        dead_letters=rng.random() < 0.3,
        letters=f"{name}-letters" if rng.random() < 0.8 else "",
        broken=rng.choice((0, 0.4, 0.9)),
        refused=rng.choice((0, 0.1)),
        slow=rng.choice((0, 0.3, 0.6)),
        soft_timeout_ms=rng.choice((None, None, 1_000)),
        rests=rng.random() < 0.5,
        batch=rng.choice((ONE_EACH, Batch(2, 1_000), Batch(5, 30))),
        rate_max=rng.choice((None, None, 2)),
        concurrency_max=rng.choice((1, 4)),
        late=rng.random() < 0.3,
    )


def _letter_box(rng: random.Random, name: str) -> SubscriptionPlan:
    return SubscriptionPlan(
        name=name,
        topic="u",
        waits_ms=(1_000,) * 4,
        lives_ms=rng.choice((None, 30_000)),
        broken=rng.choice((0, 0.5)),
        batch=rng.choice((ONE_EACH, Batch(5, 1_000))),
    )


def _kinds(rng: random.Random) -> str:
    return rng.choice(("", "", "a", "ab"))
