"""Meanings of an endpoint's status codes, where a subscription has its own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from redrive.model.attempt import Attempt, AttemptResult

_NONE: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)  # few there are, and each is itself alone: so it can be a key
class AnswerProfile:
    """A reading of status codes; attempts without an answer stay as they are.

    Attributes:
        delivered: The endpoint has the message.
        refused: No further attempt can succeed.
        failed: Another attempt may.
        floors_ms: How long the next attempt waits at least after some of them, whatever the schedule says.
    """

    delivered: frozenset[int] = _NONE
    refused: frozenset[int] = _NONE
    failed: frozenset[int] = _NONE
    floors_ms: Mapping[int, int] = field(default_factory=dict)

    def judge(self, attempt: Attempt) -> Attempt:
        """The attempt with its outcome as this profile has it; a status that it does not name keeps its own."""
        for result, statuses in (
            (AttemptResult.DELIVERED, self.delivered),
            (AttemptResult.REFUSED, self.refused),
            (AttemptResult.FAILED, self.failed),
        ):
            if attempt.status in statuses:
                return attempt if attempt.result is result else replace(attempt, result=result)
        return attempt

    def floor_ms(self, attempt: Attempt) -> int:
        """The shortest wait before the next attempt (ms)."""
        return self.floors_ms.get(attempt.status, 0)


def statuses(*parts: int | range, besides: Iterable[int] = ()) -> frozenset[int]:
    """A set of status codes, written as codes and ranges of them."""
    codes = {code for part in parts for code in ([part] if isinstance(part, int) else part)}
    return frozenset(codes - set(besides))


USUAL: Final = AnswerProfile()

# A client error counts as delivered: what the other of the two published readings of SNS says.
CLIENT_ERRORS_DELIVERED: Final = AnswerProfile(delivered=statuses(range(400, 500), besides=(429,)))
