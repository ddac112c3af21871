"""The part of pushing that is the same for every kind of endpoint: an attempt is timed, whatever came of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from redrive.endpoints.verdicts import Verdict
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt


class TimedEndpoint(ABC):
    """An endpoint (`redrive.engine.ports.Endpoint`) whose kind has only to say what an attempt came to.

    Args:
        now: Milliseconds, for durations.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now

    async def push(self, push_request: PushRequest) -> Attempt:
        """Hand it over; every way this can go wrong is an Attempt, never an exception."""
        began = self._now()
        verdict = await self._verdict(push_request)
        return verdict.after(self._now() - began)

    async def close(self) -> None:  # noqa: B027 - nothing to do for kinds that keep no connections of their own
        """Let go of connections."""

    @abstractmethod
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """Hand it over, within the request's time; nothing but cancellation is raised."""
