"""Faults on purpose: endpoints that are made to fail, for tests and drills.

A fault stands in the place of the attempt itself, so everything after it is what it would be: schedule, logs,
metrics, dead letters.
"""

from redrive.model.attempt import Attempt, AttemptResult, Reason

TOO_MANY_REQUESTS = 429
SERVER_ERRORS = 500


def failed_on_purpose(status: int) -> Attempt:
    """The attempt at an endpoint that answers with this status, by the rules for HTTP endpoints."""
    if status == TOO_MANY_REQUESTS:
        return Attempt(AttemptResult.FAILED, Reason.THROTTLED, status, "failed on purpose", 0)
    if status >= SERVER_ERRORS:
        return Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, status, "failed on purpose", 0)
    return Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, status, "failed on purpose", 0)


class FaultInjection:
    """Endpoints that are made to fail, for tests. Nothing fails by itself."""

    def __init__(self) -> None:
        self._faults: dict[str, Attempt] = {}
        self.ever = False

    def set(self, endpoint: str, attempt: Attempt) -> None:
        """Every attempt at this endpoint ends like this from now on."""
        self._faults[endpoint] = attempt
        self.ever = True

    def clear(self, endpoint: str) -> None:
        """Let the endpoint answer for itself again."""
        self._faults.pop(endpoint, None)

    def of(self, endpoint: str) -> Attempt | None:
        """The attempt that stands in for real ones at the endpoint, if one does."""
        return self._faults.get(endpoint) if self.ever else None
