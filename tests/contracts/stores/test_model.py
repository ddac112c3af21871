"""Random histories on a real store and on the dictionary model at once; after each step both must hold the same."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from redrive.engine.ports import (
    Change,
    Claim,
    ClaimRequest,
    Enqueued,
    MoveRequest,
    NewDelivery,
    Put,
    Remove,
    Require,
    RequireNone,
    Settlement,
    Store,
)
from redrive.model.delivery import Limits, Outcome
from redrive.model.errors import Conflict
from tests.contracts.stores.bench import NOON, Bench, fresh_id, fresh_token
from tests.contracts.stores.conftest import make_home
from tests.contracts.stores.homes import Home
from tests.contracts.stores.model import Model, Rows

T = TypeVar("T")

RETENTION_MS: Final = 100
ATTEMPTS_MAX: Final = 2
LIMITS: Final = (
    Limits(),
    Limits(RETENTION_MS),
    Limits(attempts_max=ATTEMPTS_MAX, dead_letters=True),
    Limits(RETENTION_MS, ATTEMPTS_MAX, dead_letters=True),
)

WORKING: Final = ("loose", "fifo")  # loose: without order, so that a group makes it fair
DEAD: Final = ("loose dead", "fifo dead")

working_queues = st.sampled_from(WORKING)
any_queues = st.sampled_from(WORKING + DEAD)
few = st.integers(1, 4)
soon = st.integers(0, 40)

Act = Callable[[str, int], Change]
ACTS: Final[tuple[Act, ...]] = (
    lambda key, version: Put("topic", key, {"over": version}, version),
    lambda key, version: Remove("topic", key, version or None),
    lambda key, version: Require("topic", key, version),
)
some_keys = st.sampled_from(["a", "a/b", "a/c", "b"])


def by_key(change: tuple[str, Act, int]) -> str:
    """The document that it names."""
    return change[0]


class History(RuleBasedStateMachine):
    """One random history."""

    def __init__(self, loop: asyncio.AbstractEventLoop, home: Home, store: Store) -> None:
        super().__init__()
        self.loop = loop
        self.home = home
        self.store = store
        self.model = Model()
        self.now = NOON
        self.sent = 0
        self.claims: list[tuple[str, int, int]] = []
        self.queues = {
            name: Bench(store, self.run(store.new_id()), ordered=name.startswith("fifo"))
            for name in WORKING + DEAD
        }

    def run(self, call: Awaitable[T]) -> T:
        return self.loop.run_until_complete(call)

    def look(self, *names: str) -> Rows:
        """Return the deliveries that the store has in these queues, by position."""
        return {row.seq: row for name in names for row in self.run(self.queues[name].peek())}

    @rule(
        name=working_queues,
        number=few,
        group=st.sampled_from([None, "a", "b"]),
        delay_ms=soon | st.just(0),
        key=st.none() | few,
    )
    def send(self, name: str, number: int, group: str | None, delay_ms: int, key: int | None) -> None:
        queue = self.queues[name]
        known = {} if key is None else {"deduplication_key": f"{key}", "deduplicate_until": self.now + 50}
        group_id = group or ("c" if queue.ordered else None)
        new_deliveries = [
            self.new_delivery(name, group_id, delay_ms=delay_ms, **known) for _ in range(number)
        ]
        self.model.enqueue(new_deliveries, self.run(self.store.enqueue(new_deliveries)))

    @rule(
        wanted=st.lists(
            st.tuples(some_keys, st.sampled_from(ACTS), st.integers(0, 2)), max_size=4, unique_by=by_key
        ),
        free=st.lists(some_keys, max_size=1),
        entering=st.lists(any_queues, max_size=2),
    )
    def write(self, wanted: list[tuple[str, Act, int]], free: list[str], entering: list[str]) -> None:
        changes: list[Change] = [act(key, version) for key, act, version in wanted]
        changes += [RequireNone("topic", key) for key in free]
        new_deliveries = [self.new_delivery(name, "a") for name in entering]
        try:
            answer = self.run(self.store.write(changes, new_deliveries))
        except Conflict:
            assert self.model.write(changes) is None
            return
        assert answer == self.model.write(changes)
        there = self.look(*self.queues)
        self.model.enqueue(
            new_deliveries, [self.enqueued(new_delivery, there) for new_delivery in new_deliveries]
        )

    @staticmethod
    def enqueued(new_delivery: NewDelivery, there: Rows) -> Enqueued:
        """Return the store's expected answer to this new delivery."""
        (seq,) = (row.seq for row in there.values() if row.message_id == new_delivery.message_id)
        return Enqueued(new_delivery.message_id, seq, repeated=False)

    def new_delivery(self, name: str, group: str | None, **others: Any) -> NewDelivery:
        """No two messages have the same body."""
        self.sent += 1
        return self.queues[name].new_delivery(f"{self.sent}", self.now, group=group, **others)

    @rule(
        name=any_queues,
        limit=few,
        lease_ms=soon | st.just(0),
        limits=st.sampled_from(LIMITS),
        ahead=st.booleans(),
    )
    def claim(self, name: str, limit: int, lease_ms: int, limits: Limits, *, ahead: bool) -> None:
        queue = self.queues[name]
        target = self.dead_of(name).target if name in WORKING and limits.dead_letters else None
        request = ClaimRequest(
            queue.id,
            queue.ordered,
            limit,
            self.now,
            lease_ms,
            fresh_token(),
            limits if target else replace(limits, dead_letters=False),
            target,
            looks_ahead=ahead,
        )
        answer = self.run(self.store.claim(request))
        self.model.claim(request, answer, self.look(name), self.look(*DEAD))
        self.claims += [(name, delivery.seq, request.token) for delivery in answer.deliveries]

    def dead_of(self, name: str) -> Bench:
        return self.queues[name if name in DEAD else f"{name} dead"]

    @rule(
        which=st.integers(0, 1000),
        wait_ms=soon,
        outcome=st.sampled_from(Outcome),
        follow_ups=st.lists(any_queues, max_size=2),
    )
    def settle(self, which: int, wait_ms: int, outcome: Outcome, follow_ups: list[str]) -> None:
        if not self.claims:
            return
        name, seq, token = self.claims[-(which % len(self.claims)) - 1]
        queue = self.queues[name]
        dies = outcome is Outcome.DEAD_LETTERED and name in WORKING
        target = self.dead_of(name).target if dies else None
        new_deliveries = (
            [] if outcome is Outcome.RETRY else [self.new_delivery(name, "a") for name in follow_ups]
        )
        one = Settlement(seq, token, outcome, self.now + wait_ms, target, follow_ups=new_deliveries)
        (answer,) = self.run(self.store.settle(queue.id, [one], self.now, ordered=queue.ordered))
        after = self.look(*self.queues)
        assert answer == self.model.settle(queue.id, one, self.now, ordered=queue.ordered, after=after)

    @rule(which=st.integers(0, 1000), wait_ms=soon | st.just(0))
    def extend(self, which: int, wait_ms: int) -> None:
        if not self.claims:
            return
        name, seq, token = self.claims[-(which % len(self.claims)) - 1]
        queue = self.queues[name]
        claim = Claim(seq, token, self.now + wait_ms)
        (answer,) = self.run(self.store.extend(queue.id, [claim], self.now, ordered=queue.ordered))
        assert answer == self.model.extend(queue.id, claim, self.now, ordered=queue.ordered)

    @rule(wait_ms=soon)
    def wait(self, wait_ms: int) -> None:
        self.now += wait_ms

    @rule(name=any_queues, limit=few, spare=st.integers(0, 3), to_origins=st.booleans())
    def move(self, name: str, limit: int, spare: int, to_origins: bool) -> None:
        queue = self.queues[name]
        working = name.removesuffix(" dead")
        request = MoveRequest(
            queue.id,
            queue.ordered,
            limit,
            self.now,
            seq_max=max(self.model.rows, default=0) - spare,
            message_ids=[fresh_id() for _ in range(limit)],
            destination=None if to_origins else self.queues[working].target,
            origins={self.queues[name].id: self.queues[name].target for name in WORKING},
        )
        answer = self.run(self.store.move(request))
        self.model.move(request, answer, self.look(*self.queues))

    @rule(name=any_queues, limit=few, spare=st.integers(0, 5))
    def purge(self, name: str, limit: int, spare: int) -> None:
        queue = self.queues[name]
        seq_max = max(self.model.rows, default=0) - spare
        gone = self.run(self.store.purge(queue.id, seq_max, limit))
        assert gone == self.model.purge(queue.id, seq_max, limit)

    @rule(
        name=st.sampled_from(("fifo", "fifo dead")),
        limit=few,
        after=st.integers(0, 5),
        delay_ms=soon | st.just(0),
    )
    def delay(self, name: str, limit: int, after: int, delay_ms: int) -> None:
        queue = self.queues[name]
        last = self.run(self.store.delay(queue.id, delay_ms, after, limit))
        assert last == self.model.delay(queue.id, delay_ms, after, limit)

    @rule(name=any_queues, limit=few, age_ms=soon)
    def sweep(self, name: str, limit: int, age_ms: int) -> None:
        queue = self.queues[name]
        gone = self.run(self.store.sweep(queue.id, self.now - age_ms, self.now, limit))
        assert gone.deliveries == self.model.sweep(queue.id, self.now - age_ms, limit)

    @rule(name=any_queues)
    def count(self, name: str) -> None:
        queue = self.queues[name]
        assert self.run(queue.count(self.now)) == self.model.count(queue.id, self.now)

    @invariant()
    def both_hold_the_same(self) -> None:
        for queue in self.queues.values():
            assert self.run(queue.peek()) == self.model.queue(queue.id)
        documents = {(one.kind, one.key): one for one in self.run(self.store.find("topic", ""))}
        assert documents == self.model.documents

    def teardown(self) -> None:
        self.run(self.store.write([Remove(kind, key) for kind, key in self.model.documents]))
        self.run(self.home.check_turns())


@pytest.fixture(params=["sqlite-memory", "postgres", "citus"])
def loop_and_home(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[asyncio.AbstractEventLoop, Home]]:
    with asyncio.Runner() as runner:
        home = make_home(request.param, request, tmp_path)
        yield runner.get_loop(), home
        runner.run(home.leave())


def test_every_history_is_that_of_the_model(loop_and_home: tuple[asyncio.AbstractEventLoop, Home]) -> None:
    loop, home = loop_and_home
    store = loop.run_until_complete(home.open())

    class ThisHistory(History):
        def __init__(self) -> None:
            super().__init__(loop, home, store)

    examples = 10 if home.kind == "citus" else settings().max_examples  # each takes 5 s on a cluster
    run_state_machine_as_test(ThisHistory, settings=settings(max_examples=examples, stateful_step_count=40))
