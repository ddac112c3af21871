"""Attempts under a plan: batches, expiry, throttling, soft timeout, circuit breaker and follow-ups."""

import asyncio
import random
from dataclasses import replace
from itertools import islice, pairwise

import pytest

from redrive.engine.ports import Batch, ClaimRequest, ClaimResult, FollowUp, PushRequest
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import AnswerProfile, Attempt, AttemptResult, Reason, statuses
from redrive.model.circuit import CircuitPolicy
from redrive.model.delivery import Outcome
from redrive.model.retry import Phase, RetrySchedule
from redrive.model.retry import Stage as RetryStage
from redrive.model.retry_plans import CUSTOMER_ENDPOINT, FUNCTION_BUSY, FUNCTION_ERROR, MANAGED_ENDPOINT
from redrive.model.topic import Publication
from redrive.testing import VirtualClock, run_virtual
from tests.engine.stage import BROKEN, GONE, OK, Stage, name

pytestmark = pytest.mark.usefixtures("pushes")

MINUTE_MS = 60_000


def minutely(expires_after_ms: int | None = None) -> RetrySchedule:
    stage = RetryStage(Phase.BACKOFF, 100, MINUTE_MS, MINUTE_MS)
    return RetrySchedule((stage,), expires_after_ms=expires_after_ms, earlier_permille=0)


async def published_while_away(stage: Stage, *bodies: str, dead: bool = True) -> int:
    """Publish before anybody pushes, then begin to push; the subscription's backlog."""
    await stage.store.open()
    letters = await stage.queue("dead")
    topic = await stage.topic()
    subscription = await stage.subscribe(
        topic, "s", "somewhere", dead_letter=letters.name if dead else None, rests=True
    )
    stage.engine.parts.dispatcher.forget(subscription.queue_id)
    for body in bodies:
        await stage.publish(topic, body)
    await stage.engine.parts.dispatcher.open()
    await stage.engine.until_quiet()
    return subscription.queue_id


class TestBatches:
    async def test_deliveries_due_together_are_pushed_in_batches(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng)
        stage.profile.changes = {"batch": Batch(3, 1000)}
        backlog = await published_while_away(stage, *"abcdefgh")
        assert [body for _, body in stage.endpoint.pushed] == ["a+b+c", "d+e+f", "g+h"]
        assert await stage.store.peek(backlog, 10) == []
        assert [fact.position for fact in stage.memory.attempts] == [0, 1, 2, 0, 1, 2, 0, 1]

    async def test_a_delivery_heavier_than_the_batch_limit_is_pushed_alone(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng)
        stage.profile.changes = {"batch": Batch(10, 4)}
        await published_while_away(stage, "aa", "bb", "c" * 9, "d", "e")
        assert [body for _, body in stage.endpoint.pushed] == ["aa+bb", "c" * 9, "d+e"]

    async def test_a_batch_succeeds_or_fails_as_a_whole_and_stays_together(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng, BROKEN)
        stage.profile.changes = {"batch": Batch(10, 1000)}
        stage.profile.schedule = minutely()
        began = clock.now()
        backlog = await published_while_away(stage, *"abc")
        assert [one.attempts for one in await stage.store.peek(backlog, 10)] == [1, 1, 1]
        await clock.sleep_until(began + 2 * MINUTE_MS)
        assert stage.endpoint.pushed == [(began, "a+b+c"), (began + MINUTE_MS, "a+b+c")]
        assert await stage.store.peek(backlog, 10) == []

    async def test_claimed_deliveries_over_the_concurrency_limit_are_released_uncounted(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng)
        stage.profile.changes = {"batch": Batch(100, 1), "concurrency_max": 2}
        under_way, most = 0, 0

        async def think(_: PushRequest) -> None:
            nonlocal under_way, most
            under_way, most = under_way + 1, max(most, under_way + 1)
            await clock.sleep_until(clock.now() + 1000)
            under_way -= 1

        stage.endpoint.before = think
        began = clock.now()
        publishing = asyncio.create_task(published_while_away(stage, *"abcdefg"))
        await clock.sleep_until(began + 500)
        topic = await stage.engine.resources.topics.get(name("orders"))
        assert topic is not None
        (subscription,) = await stage.engine.resources.subscriptions.of(topic.name)
        held = [one.available_at > clock.now() for one in await stage.store.peek(subscription.queue_id, 10)]
        assert held == [True, True, False, False, False, False, False]
        await publishing
        assert most == 2
        assert [body for _, body in stage.endpoint.pushed] == list("abcdefg")
        assert {fact.delivery.attempts for fact in stage.memory.attempts} == {1}

    async def test_claim_sizes_follow_the_room_under_the_concurrency_limit(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng)
        stage.profile.changes = {"batch": Batch(64, 1), "concurrency_max": 1}
        limits: list[int] = []
        claim = stage.store.claim

        def counted(request: ClaimRequest) -> asyncio.Future[ClaimResult]:
            limits.append(request.limit)
            return claim(request)

        stage.store.claim = counted  # type: ignore[method-assign]  # a store that a test looks into
        await published_while_away(stage, *("aa" for _ in range(20)))
        assert max(limits[limits.index(1) :]) == 2
        stage.profile.changes = {"batch": Batch(64, 1000), "concurrency_max": 1}
        topic = await stage.engine.resources.topics.get(name("orders"))
        assert topic is not None
        (subscription,) = await stage.engine.resources.subscriptions.of(topic.name)
        await stage.replan(subscription)

        async def until_all_are_there(_: PushRequest) -> None:
            await clock.sleep_until(clock.now() + 1000)

        stage.endpoint.before = until_all_are_there
        for _ in range(200):
            await stage.publish(topic, "a")
        await stage.engine.until_quiet()
        assert limits[-1] == 64
        assert len(stage.endpoint.pushed) < 20 + 10


class TestParts:
    """Outcomes that an endpoint gives each delivery of a batch."""

    async def test_each_part_of_a_batch_has_its_own_outcome(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        told_apart = replace(BROKEN, parts=(OK, BROKEN, GONE, OK))
        stage = Stage(clock, rng, told_apart)
        stage.profile.changes = {"batch": Batch(10, 1000)}
        stage.profile.schedule = minutely()
        began = clock.now()
        backlog = await published_while_away(stage, *"abcd")
        (left,) = await stage.store.peek(backlog, 10)
        assert (left.body, left.attempts, left.available_at) == ("b", 1, began + MINUTE_MS)
        (note,) = await stage.store.notes(backlog, left.message_id)
        assert note.reason == Reason.SERVER_ERROR
        facts = stage.memory.attempts
        assert [(fact.delivery.body, fact.attempt, fact.transition.outcome) for fact in facts] == [
            ("a", OK, Outcome.DELIVERED),
            ("b", BROKEN, Outcome.RETRY),
            ("c", GONE, Outcome.DEAD_LETTERED),
            ("d", OK, Outcome.DELIVERED),
        ]
        (letter,) = stage.memory.dead
        assert letter.delivery.body == "c"
        await clock.sleep_until(began + MINUTE_MS + 1)
        assert [body for _, body in stage.endpoint.pushed] == ["a+b+c+d", "b"]

    async def test_the_answer_profile_judges_each_part(self, clock: VirtualClock, rng: random.Random) -> None:
        stage = Stage(clock, rng, replace(GONE, parts=(GONE, BROKEN)))
        delivered = AnswerProfile(delivered=statuses(404))
        stage.profile.changes = {"batch": Batch(10, 1000), "answers": delivered}
        await published_while_away(stage, *"ab")
        endings = [fact.transition.outcome for fact in stage.memory.attempts]
        assert endings == [Outcome.DELIVERED, Outcome.RETRY]


SLOWER = Attempt(AttemptResult.FAILED, Reason.THROTTLED, 503, "", 1)
UNMADE = Attempt(AttemptResult.FAILED, Reason.UNMADE, 0, "")


class TestThrottling:
    """An endpoint that asks for a slower pace gets another schedule, which counts what was throttled alone."""

    def _waits(
        self,
        *script: Attempt,
        batch: int = 1,
        schedule: RetrySchedule = MANAGED_ENDPOINT,
        slower: RetrySchedule = CUSTOMER_ENDPOINT,
        **changes: object,
    ) -> tuple[list[int], list[Outcome]]:
        """The waits between attempts, in thousandths of the nominal ones; and how it ended, two days later."""
        waits: list[int] = []
        endings: list[Outcome] = []

        async def story(clock: VirtualClock, rng: random.Random) -> None:
            stage = Stage(clock, rng, *script)
            stage.profile.schedule = replace(schedule, earlier_permille=0)
            throttled = replace(slower, earlier_permille=0)
            stage.profile.changes = {"throttled_schedule": throttled, "batch": Batch(batch, 1000), **changes}
            await published_while_away(stage, *"ab"[:batch])
            await clock.sleep_until(clock.now() + 48 * 60 * MINUTE_MS)
            moments = [at for at, _ in stage.endpoint.pushed]
            waits.extend(later - earlier for earlier, later in pairwise(moments))
            endings.extend(fact.transition.outcome for fact in stage.memory.attempts)

        run_virtual(story)
        return waits, endings

    def test_throttling_lasts_50_retries_in_7_hours(self) -> None:
        waits, endings = self._waits(*[SLOWER] * 52)
        steps = [step.nominal_ms for step in CUSTOMER_ENDPOINT.steps()]
        assert waits == steps
        assert (len(steps), steps[:2], steps[2], steps[-38:]) == (50, [10_000] * 2, 10_000, [600_000] * 38)
        assert endings == [Outcome.RETRY] * 50 + [Outcome.DEAD_LETTERED]

    def test_failures_without_throttling_follow_their_own_schedule(self) -> None:
        waits, endings = self._waits(*[BROKEN] * 100)
        assert waits[:100] == [step.nominal_ms for step in islice(MANAGED_ENDPOINT.steps(), 100)]
        assert (len(endings), endings[-1]) == (101, Outcome.DELIVERED)

    def test_retries_of_an_outage_do_not_count_towards_throttling(self) -> None:
        waits, endings = self._waits(*[BROKEN] * 200, *[SLOWER] * 3)
        assert waits[199:] == [20_000, 10_000, 10_000, 10_000]
        assert endings[-1] is Outcome.DELIVERED

    def test_throttled_attempts_are_counted_over_others_between_them(self) -> None:
        waits, _ = self._waits(SLOWER, BROKEN, SLOWER, BROKEN, SLOWER, BROKEN, SLOWER)
        assert waits == [10_000, 0, 10_000, 1_000, 10_000, 1_000, 11_155]

    def test_attempts_that_do_not_count_leave_the_other_schedule_whole(self) -> None:
        uncounted = {"uncounted": frozenset({Reason.THROTTLED, Reason.UNMADE})}
        script = (SLOWER, BROKEN, SLOWER, UNMADE, BROKEN, SLOWER, BROKEN, BROKEN)
        waits, endings = self._waits(*script, schedule=FUNCTION_ERROR, slower=FUNCTION_BUSY, **uncounted)
        assert waits == [1_000, 60_000, 2_000, 4_000, 120_000, 8_000]
        assert endings[-1] is Outcome.DEAD_LETTERED

    def test_throttling_without_end_lasts_as_long_as_the_delivery_may_age(self) -> None:
        changes = {"uncounted": frozenset({Reason.THROTTLED}), "age_ms_max": 360 * MINUTE_MS}
        waits, endings = self._waits(
            *[SLOWER] * 200, schedule=FUNCTION_ERROR, slower=FUNCTION_BUSY, **changes
        )
        assert waits[:10] == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000]
        assert set(waits[10:]) == {300_000}
        assert 355 * MINUTE_MS < sum(waits) <= 360 * MINUTE_MS
        assert endings[-1] is Outcome.DEAD_LETTERED

    def test_throttled_parts_of_a_batch_stay_together(self) -> None:
        both = replace(SLOWER, parts=(SLOWER, SLOWER))
        waits, endings = self._waits(*[both] * 20, batch=2)
        assert len(waits) == 20
        assert endings == [Outcome.RETRY] * 40 + [Outcome.DELIVERED] * 2


class TestExpiry:
    async def test_an_expired_delivery_is_settled_when_its_attempt_falls_due(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng, otherwise=BROKEN)
        stage.profile.schedule = minutely(expires_after_ms=150_000)
        began = clock.now()
        backlog = await published_while_away(stage, "a")
        await clock.sleep_until(began + 3 * MINUTE_MS - 1)
        assert len(await stage.store.peek(backlog, 10)) == 1  # past its time, and waiting still
        await clock.sleep_until(began + 3 * MINUTE_MS + 1)
        assert len(stage.endpoint.pushed) == 3
        dead = await stage.engine.resources.queues.get(name("dead"))
        assert dead is not None
        (letter,) = await stage.engine.operations.dead_letters.letters(dead, 0, 10)
        assert (letter.delivery.body, letter.delivery.failure, letter.attempts) == ("a", "expired", 3)
        assert (letter.delivery.attempts, letter.delivery.sent_at) == (0, clock.now() - 1)
        (fact,) = stage.memory.expirations
        assert (fact.delivery.attempts, fact.attempt.reason) == (3, Reason.EXPIRED)
        assert fact.transition.outcome is Outcome.DEAD_LETTERED
        assert len(stage.memory.attempts) == 3

    async def test_an_expired_delivery_without_a_dead_letter_queue_is_removed(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng, otherwise=BROKEN)
        stage.profile.schedule = minutely(expires_after_ms=1)
        backlog = await published_while_away(stage, "a", dead=False)
        await clock.sleep_until(clock.now() + MINUTE_MS + 1)
        assert await stage.store.peek(backlog, 10) == []
        assert [fact.transition.outcome for fact in stage.memory.expirations] == [Outcome.EXPIRED]


class TestAnswers:
    async def test_a_status_means_what_the_plan_says_and_may_ask_for_time(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng, GONE)
        stage.profile.schedule = minutely()
        profile = AnswerProfile(failed=statuses(404), floors_ms={404: 5 * MINUTE_MS})
        stage.profile.changes = {"answers": profile}
        began = clock.now()
        await published_while_away(stage, "a")
        await clock.sleep_until(began + 10 * MINUTE_MS)
        assert [at - began for at, _ in stage.endpoint.pushed] == [0, 5 * MINUTE_MS]


class TestSoftTimeout:
    @pytest.mark.parametrize(
        ("answers_after_ms", "attempts", "outcomes"),
        [
            (29_000, 1, [AttemptResult.DELIVERED]),
            (31_000, 1, [AttemptResult.DELIVERED]),  # late, and taken off the queue of retries
            (200_000, 3, [AttemptResult.FAILED] * 2),  # of the third, nothing is known yet
        ],
    )
    @pytest.mark.parametrize("answer", [OK, GONE])
    async def test_a_late_answer_counts_until_the_next_attempt(
        self,
        answers_after_ms: int,
        attempts: int,
        outcomes: list[AttemptResult],
        answer: Attempt,
        clock: VirtualClock,
        rng: random.Random,
    ) -> None:
        """True if it takes the message or says that it never will."""
        final = answer.result
        outcomes = [final if one is AttemptResult.DELIVERED else one for one in outcomes]
        stage = Stage(clock, rng, otherwise=answer)
        stage.profile.schedule = minutely()
        stage.profile.changes = {"soft_timeout_ms": 30_000, "lease_ms": 45_000}

        async def think(_: PushRequest) -> None:
            await clock.sleep_until(clock.now() + answers_after_ms)

        stage.endpoint.before = think
        began = clock.now()
        pushing = asyncio.create_task(published_while_away(stage, "a"))
        await clock.sleep_until(began + 4 * MINUTE_MS)
        assert len(stage.endpoint.pushed) == attempts
        assert [fact.attempt.result for fact in stage.memory.attempts] == outcomes
        if outcomes[-1] is final:
            backlog = await pushing
            assert await stage.store.peek(backlog, 10) == []
        pushing.cancel()
        await stage.engine.close()


class TestCircuitBreaker:
    POLICY = CircuitPolicy(by_status={503: 5 * MINUTE_MS}, failures_max=3)

    async def test_an_open_circuit_holds_all_deliveries_then_lets_one_probe(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng, BROKEN, BROKEN)
        stage.profile.schedule = minutely()
        stage.profile.changes = {"circuit": self.POLICY}
        began = clock.now()
        await published_while_away(stage, "a")
        topic = await stage.engine.resources.topics.get(name("orders"))
        assert topic is not None
        for body in ("b", "c"):
            await stage.publish(topic, body)
        await clock.sleep_until(began + 5 * MINUTE_MS - 1)
        assert stage.endpoint.pushed == [(began, "a")]
        ((_, state),) = (await stage.engine.operations.open_circuits()).items()
        assert (state.reason, state.status, state.until) == (
            Reason.SERVER_ERROR,
            503,
            began + 5 * MINUTE_MS,
        )
        await clock.sleep_until(began + 10 * MINUTE_MS - 1)
        assert len(stage.endpoint.pushed) == 2  # one probe, which failed
        await clock.sleep_until(began + 10 * MINUTE_MS + 1)
        assert len(stage.endpoint.pushed) == 5  # one, which was taken, and the others after it
        assert not await stage.engine.operations.open_circuits()

    async def test_a_circuit_is_the_same_on_every_node_and_can_be_closed(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng, BROKEN)
        stage.profile.schedule = minutely()
        stage.profile.changes = {"circuit": self.POLICY}
        backlog = await published_while_away(stage, "a")
        subscription = await stage.engine.resources.subscriptions.of_backlog(backlog)
        assert subscription is not None
        assert await stage.node("b").parts.circuits.of(subscription) is not None
        await stage.engine.operations.close_circuit(subscription)
        await clock.sleep_until(clock.now() + MINUTE_MS + 1)
        assert len(stage.endpoint.pushed) == 2


class TestFollowUps:
    @pytest.mark.parametrize("script", [[OK], [GONE]])
    async def test_follow_ups_are_written_in_the_transaction_that_settles(
        self, script: list[Attempt], clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng, *script)

        def consequences(fact: Attempted) -> list[FollowUp]:
            if fact.subscription.id != "s":
                return []
            body = f"{fact.delivery.body} {fact.transition.outcome}"
            told = Publication(stage.engine.runtime.message_id(), body, {}, {}, b'{"x":1}', len(body))
            return [FollowUp(fact.topic.name, told, "archive", MINUTE_MS)]

        stage.profile.follow_ups_made = consequences
        await stage.store.open()
        topic = await stage.topic()
        await stage.subscribe(topic, "archive", "archive", confirmed=False)
        began = clock.now()
        await stage.subscribe(topic, "s", "somewhere")
        await stage.publish(topic, "a")
        await clock.sleep_until(began + MINUTE_MS + 1)
        outcome = Outcome.DELIVERED if script == [OK] else Outcome.DROPPED
        assert stage.endpoint.pushed == [(began, "a"), (began + MINUTE_MS, f"a {outcome}")]

    @pytest.mark.parametrize(("attempt", "dead"), [(OK, []), (GONE, ["a", "b", "c"])])
    async def test_a_delivery_whose_follow_ups_cannot_be_made_is_settled_all_the_same(
        self,
        attempt: Attempt,
        dead: list[str],
        caplog: pytest.LogCaptureFixture,
        clock: VirtualClock,
        rng: random.Random,
    ) -> None:
        stage = Stage(clock, rng, otherwise=attempt)

        def consequences(fact: Attempted) -> list[FollowUp]:
            if fact.delivery.body == "b":
                raise ValueError("no way to say this")
            told = Publication(stage.engine.runtime.message_id(), "told", {}, {}, b'{"x":1}', 4)
            return [FollowUp(name("news"), told)]

        stage.profile.follow_ups_made = consequences
        stage.profile.changes = {"batch": Batch(3, 1000)}
        await stage.engine.open()
        news, letters = await stage.queue("news"), await stage.queue("dead")
        await stage.subscribe(await stage.topic("news"), "n", "queue:news")
        topic = await stage.topic()
        subscription = await stage.subscribe(topic, "s", "somewhere", dead_letter=letters.name)
        stage.engine.parts.dispatcher.forget(subscription.queue_id)
        for body in "abc":
            await stage.publish(topic, body)
        await stage.engine.parts.dispatcher.open()
        await clock.sleep_until(clock.now() + 5 * MINUTE_MS)
        assert [body for _, body in stage.endpoint.pushed] == ["a+b+c"]
        assert await stage.store.peek(subscription.queue_id, 10) == []
        assert await stage.bodies_in(news) == ["told", "told"]
        assert await stage.bodies_in(letters) == dead
        assert caplog.text.count("delivery.leads_nowhere") == 1
        assert "no way to say this" in caplog.text
        await stage.engine.close()

    async def test_an_endpoint_that_breaks_its_promise_makes_a_failed_attempt(
        self, clock: VirtualClock, rng: random.Random
    ) -> None:
        stage = Stage(clock, rng)
        stage.profile.schedule = minutely()

        async def fail(_: PushRequest) -> None:
            if len(stage.endpoint.pushed) == 1:
                raise KeyError("a fault of our own")

        stage.endpoint.before = fail
        began = clock.now()
        await published_while_away(stage, "a")
        await clock.sleep_until(began + 5 * MINUTE_MS)
        assert [at - began for at, _ in stage.endpoint.pushed] == [0, MINUTE_MS]
        assert [fact.attempt.reason for fact in stage.memory.attempts] == [Reason.UNMADE, Reason.ACCEPTED]
        await stage.engine.close()
