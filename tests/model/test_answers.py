import pytest

from redrive.model.attempt import (
    CLIENT_ERRORS_DELIVERED,
    USUAL,
    AnswerProfile,
    Attempt,
    AttemptResult,
    Reason,
    statuses,
)

STRICT = AnswerProfile(
    delivered=statuses(range(200, 205)),
    refused=statuses(400, 413),
    failed=statuses(range(205, 600), besides=(400, 413)),
    floors_ms={503: 30_000},
)


def attempt(status: int, result: AttemptResult) -> Attempt:
    return Attempt(result, Reason.ACCEPTED, status, "said", 7)


@pytest.mark.parametrize(
    ("profile", "status", "before", "after"),
    [
        (USUAL, 404, AttemptResult.REFUSED, AttemptResult.REFUSED),
        (CLIENT_ERRORS_DELIVERED, 404, AttemptResult.REFUSED, AttemptResult.DELIVERED),
        (CLIENT_ERRORS_DELIVERED, 429, AttemptResult.FAILED, AttemptResult.FAILED),
        (CLIENT_ERRORS_DELIVERED, 302, AttemptResult.REFUSED, AttemptResult.REFUSED),
        (CLIENT_ERRORS_DELIVERED, 500, AttemptResult.FAILED, AttemptResult.FAILED),
        (STRICT, 204, AttemptResult.DELIVERED, AttemptResult.DELIVERED),
        (STRICT, 205, AttemptResult.DELIVERED, AttemptResult.FAILED),
        (STRICT, 404, AttemptResult.REFUSED, AttemptResult.FAILED),
        (STRICT, 413, AttemptResult.REFUSED, AttemptResult.REFUSED),
        (STRICT, 0, AttemptResult.REFUSED, AttemptResult.REFUSED),
    ],
)
def test_a_status_means_what_the_profile_says(
    profile: AnswerProfile, status: int, before: AttemptResult, after: AttemptResult
) -> None:
    judged = profile.judge(attempt(status, before))
    assert judged == attempt(status, after)


def test_floors_are_by_status() -> None:
    assert STRICT.floor_ms(attempt(503, AttemptResult.FAILED)) == 30_000
    assert STRICT.floor_ms(attempt(500, AttemptResult.FAILED)) == 0
