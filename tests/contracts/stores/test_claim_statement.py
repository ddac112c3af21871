"""The statement with which PostgreSQL claims for itself does what the model says, or leaves all alone."""

import asyncio
import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from redrive.engine.ports import ClaimRequest
from redrive.model.claiming import ClaimShare, offer, order_of_due, plan_fair
from redrive.model.delivery import Delivery, Limits, LinePosition, Outcome
from redrive.runtime.machine import SystemClock
from redrive.stores.postgres import claiming
from redrive.stores.postgres.store import PostgresStore
from tests.contracts.stores.bench import LEASE_MS, NOON, Bench

SET_BACK = (
    "UPDATE deliveries SET attempts = $3, token = $4, first_claimed_at = $5, place = $6, available_at = $7"
    " WHERE queue_id = $1 AND seq = $2"
)

past = st.tuples(
    st.integers(0, 2),  # attempts
    st.sampled_from([None, 5]),  # the token of a claim that ran out
    st.sampled_from([0, 60, 120]),  # age (ms)
    st.sampled_from([LinePosition.READY] * 5 + [LinePosition.HEAD]),
    st.sampled_from([0, 0, 0, 1]),  # due in (ms)
)
limits_of_any_kind = st.builds(
    Limits, st.none() | st.just(100), st.integers(0, 2), st.booleans(), st.booleans(), st.booleans()
)


def test_a_claim_by_one_statement_is_that_of_the_model(shared_database: str) -> None:
    async def check(
        rows: list[tuple[int, int | None, int, LinePosition, int]],
        rooms: list[int],
        limits: Limits,
        resumes: bool,
    ) -> None:
        queue = Bench(store, await store.new_id())
        for attempts, token, age_ms, place, wait_ms in rows:
            (seq,) = await queue.send("a", now=NOON - age_ms)
            first = None if token is None else NOON - 7
            values = (queue.id, seq, attempts, token, first, place, NOON + wait_ms)
            await store.connections.run(
                lambda connection, values=values: connection.execute(SET_BACK, *values)
            )
        requests = [
            ClaimRequest(queue.id, False, room, NOON, LEASE_MS, next(tokens), limits, resumes=resumes)
            for room in rooms
        ]
        before = await queue.peek()
        line = [
            (replace(one), place)
            for one, (*_, place, _) in zip(before, rows, strict=True)
            if one.available_at <= NOON
        ]
        line.sort(key=lambda placed: order_of_due(placed[0]))
        front = line[: sum(rooms)]
        answers = await store.connections.run(
            lambda connection: claiming._claim_ordinary(connection, requests)
        )
        if all(
            place == LinePosition.READY and offer(one, limits, NOON) is Outcome.RETRY for one, place in front
        ):
            shares = [ClaimShare(request) for request in requests]
            plan_fair(shares, front, {}, NOON)
            expected: list[list[Delivery]] = [share.claimed.deliveries for share in shares]
            assert [answer.deliveries if answer else [] for answer in answers] == expected
        else:
            assert await queue.peek() == before
            assert answers == [None] * len(requests)

    with asyncio.Runner() as runner:
        store = PostgresStore(shared_database, SystemClock(), "one")
        runner.run(store.open())
        tokens = itertools.count(100)

        @given(
            st.lists(past, max_size=6),
            st.lists(st.integers(1, 3), min_size=1, max_size=3),
            limits_of_any_kind,
            st.booleans(),
        )
        def every_line(
            rows: list[tuple[int, int | None, int, LinePosition, int]],
            rooms: list[int],
            limits: Limits,
            resumes: bool,
        ) -> None:
            runner.run(check(rows, rooms, limits, resumes))

        every_line()
        runner.run(store.close())
