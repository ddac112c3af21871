"""Pushing events: a function is run for each, and what came of it is an attempt."""

import random
from http import HTTPStatus
from typing import Final

from redrive.aws.lambda_.documents.lookup import Lookup
from redrive.aws.lambda_.functions.sealed_variables import VariablesUnreadable
from redrive.aws.lambda_.invocations import profile
from redrive.aws.lambda_.invocations.attempts import missing, throttled, unreadable
from redrive.aws.lambda_.invocations.events import FUNCTION_ERROR, INVOKED, VERSION
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.function import InvocationResult, Throttled

_SAID_CHARS_MAX: Final = 1024
#: Reserved concurrency 0 switches a function off: its events go where failures go, and are not tried.
_NONE_RESERVED: Final = throttled(AttemptResult.REFUSED, Reason.DISABLED)
_THROTTLED: Final = throttled(AttemptResult.FAILED, Reason.THROTTLED)


class InvocationEndpoint:
    """Runs a function for one event (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, lookup: Lookup, executor: Executor, rng: random.Random) -> None:
        """Run functions that are found here by this executor; `rng` chooses between an alias's versions."""
        self._lookup = lookup
        self._executor = executor
        self._rng = rng

    async def push(self, push_request: PushRequest) -> Attempt:
        """Run it, and say what came of it."""
        headers = push_request.headers
        target = await self._lookup.at(push_request.endpoint)
        if target is None:
            return missing(push_request.endpoint)
        if target.function.reserved == 0:
            return _NONE_RESERVED
        version = await self._lookup.chosen(target, self._rng)
        try:
            result = await self._executor.run(
                target,
                version,
                headers[profile.INVOKED_AS],
                push_request.body,
                headers[profile.REQUEST],
                trace=headers.get(profile.TRACE),
            )
        except Throttled:
            return _THROTTLED
        except VariablesUnreadable as refusal:
            return unreadable(refusal.error)
        return _came_of(result, version.version, int(headers[profile.INVOKED_BEFORE]) + 1)

    async def close(self) -> None:
        """There is nothing to let go of."""


def _came_of(result: InvocationResult, version: str, invoked: int) -> Attempt:
    identifiers = [(VERSION, version), (INVOKED, str(invoked))]
    if result.failed:
        identifiers.append((FUNCTION_ERROR, "Unhandled"))
    return Attempt(
        AttemptResult.FAILED if result.failed else AttemptResult.DELIVERED,
        Reason.SERVER_ERROR if result.failed else Reason.ACCEPTED,
        HTTPStatus.OK,
        result.payload[:_SAID_CHARS_MAX].decode(errors="replace") if result.failed else "",
        round(result.duration_ms),
        tuple(identifiers),
        answer=result.payload,
    )
