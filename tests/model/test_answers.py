import pytest

from redrive.model.answers import CLIENT_ERRORS_DELIVERED, USUAL, AnswerProfile, statuses
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Outcome

STRICT = AnswerProfile(
    delivered=statuses(range(200, 205)),
    refused=statuses(400, 413),
    failed=statuses(range(205, 600), besides=(400, 413)),
    floors_ms={503: 30_000},
)


def attempt(status: int, outcome: Outcome) -> Attempt:
    return Attempt(outcome, Reason.ACCEPTED, status, "said", 7)


@pytest.mark.parametrize(
    ("profile", "status", "before", "after"),
    [
        (USUAL, 404, Outcome.REFUSED, Outcome.REFUSED),
        (CLIENT_ERRORS_DELIVERED, 404, Outcome.REFUSED, Outcome.DELIVERED),
        (CLIENT_ERRORS_DELIVERED, 429, Outcome.FAILED, Outcome.FAILED),
        (CLIENT_ERRORS_DELIVERED, 302, Outcome.REFUSED, Outcome.REFUSED),
        (CLIENT_ERRORS_DELIVERED, 500, Outcome.FAILED, Outcome.FAILED),
        (STRICT, 204, Outcome.DELIVERED, Outcome.DELIVERED),
        (STRICT, 205, Outcome.DELIVERED, Outcome.FAILED),
        (STRICT, 404, Outcome.REFUSED, Outcome.FAILED),
        (STRICT, 413, Outcome.REFUSED, Outcome.REFUSED),
        (STRICT, 0, Outcome.REFUSED, Outcome.REFUSED),
    ],
)
def test_a_status_means_what_the_profile_says(
    profile: AnswerProfile, status: int, before: Outcome, after: Outcome
) -> None:
    judged = profile.judge(attempt(status, before))
    assert judged == attempt(status, after)


def test_floors_are_by_status() -> None:
    assert STRICT.floor_ms(attempt(503, Outcome.FAILED)) == 30_000
    assert STRICT.floor_ms(attempt(500, Outcome.FAILED)) == 0
