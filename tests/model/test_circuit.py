import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.circuit import CircuitPolicy, OpenCircuit, after_failure

NOON = 1_767_268_800_000
MINUTE_MS = 60_000
POLICY = CircuitPolicy(
    by_status={404: 5 * MINUTE_MS, 503: 10_000},
    by_reason={Reason.CONNECTION: 30_000, Reason.TIMED_OUT: 10_000},
)


def failed(status: int = 0, reason: Reason = Reason.SERVER_ERROR) -> Attempt:
    return Attempt(AttemptResult.FAILED, reason, status, "", 1)


@pytest.mark.parametrize(
    ("attempt", "rest_ms"),
    [
        (failed(503), 10_000),
        (failed(404, Reason.CLIENT_ERROR), 5 * MINUTE_MS),
        (failed(reason=Reason.CONNECTION), 30_000),
        (failed(reason=Reason.TIMED_OUT), 10_000),
        (failed(500), 0),
    ],
)
def test_some_failures_open_the_circuit_at_once(attempt: Attempt, rest_ms: int) -> None:
    after = after_failure(POLICY, None, 1, attempt, NOON)
    if rest_ms:
        assert after == OpenCircuit(attempt.reason, attempt.status, NOON, NOON + rest_ms, 1, 0)
    else:
        assert after is None


def test_ten_consecutive_failures_of_any_kind_open_the_circuit() -> None:
    assert after_failure(POLICY, None, 9, failed(500), NOON) is None
    after = after_failure(POLICY, None, 10, failed(500), NOON)
    assert after == OpenCircuit(Reason.SERVER_ERROR, 500, NOON, NOON + MINUTE_MS, 10, 1)


def test_a_failed_probe_opens_the_circuit_for_twice_as_long_up_to_four_hours() -> None:
    state, now, lengths = None, NOON, []
    for failures in range(10, 22):
        state = after_failure(POLICY, state, failures, failed(500), now)
        assert state is not None
        lengths.append((state.until - now) // MINUTE_MS)
        now = state.until
    assert lengths == [1, 2, 4, 8, 16, 32, 64, 128, 240, 240, 240, 240]
    assert state is not None
    assert (state.since, state.rests) == (NOON, 12)


def test_attempts_in_flight_when_the_circuit_opened_do_not_lengthen_it() -> None:
    resting = after_failure(POLICY, None, 1, failed(503), NOON)
    assert after_failure(POLICY, resting, 12, failed(503), NOON + 900) == resting
    assert after_failure(POLICY, resting, 12, failed(500), NOON + 5000) == resting


def test_an_attempt_in_flight_that_asks_for_longer_lengthens_an_open_circuit() -> None:
    resting = after_failure(POLICY, None, 1, failed(503), NOON)
    longer = after_failure(POLICY, resting, 2, failed(404), NOON + 100)
    assert longer is not None
    assert (longer.until, longer.since, longer.status) == (NOON + 100 + 5 * MINUTE_MS, NOON, 404)


def test_an_isolated_failure_after_the_probe_keeps_the_circuit_as_it_was() -> None:
    over = OpenCircuit(Reason.SERVER_ERROR, 503, NOON, NOON + 10_000, 3)
    assert after_failure(POLICY, over, 4, failed(500), NOON + 20_000) == over


@given(
    st.lists(
        st.tuples(
            st.sampled_from([failed(503), failed(404), failed(500), failed(reason=Reason.CONNECTION)]),
            st.integers(0, 600_000),
        ),
        max_size=40,
    )
)
def test_an_open_circuit_ends_in_the_future_and_within_the_longest_period(
    failures: list[tuple[Attempt, int]],
) -> None:
    state, now = None, NOON
    for number, (attempt, later_ms) in enumerate(failures, start=1):
        now += later_ms
        before, state = state, after_failure(POLICY, state, number, attempt, now)
        if state is not None and state != before:
            assert now < state.until <= now + POLICY.longest_ms
            assert state.since <= now
            assert OpenCircuit.from_document(state.to_document()) == state
