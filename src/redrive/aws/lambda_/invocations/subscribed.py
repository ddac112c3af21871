"""Functions as subscribers: what topics have for a function becomes an event of it, or goes to another server."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.lookup import Lookup, may_be_invoked_for
from redrive.aws.lambda_.invocations.asynchronous import AsyncInvocations
from redrive.aws.lambda_.invocations.attempts import failure, missing
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import Clock, Endpoint, PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason

_TRACE: Final = "X-Amzn-Trace-Id"
#: The header of a request that names the resource it comes from, by its ARN.
_SOURCE: Final = "x-redrive-source-arn"


class FunctionSubscriber:
    """Takes what topics have for functions of this server, and hands on what is for functions elsewhere.

    A request's endpoint is the function's ARN, with or without a qualifier; its body is the event. Delivered is what is
    on disk: what becomes of the event then is its own affair.
    """

    def __init__(
        self,
        lookup: Lookup,
        invocations: AsyncInvocations,
        clock: Clock,
        new_request_id: Callable[[], str],
        *,
        elsewhere: Callable[[str], Endpoint | None],
        open_functions: bool,
    ) -> None:
        """Take events for functions that are found here.

        Args:
            lookup: Finds them.
            invocations: Takes events.
            clock: For durations.
            new_request_id: Makes ids of requests.
            elsewhere: The endpoint of a function that the settings put on another server; None: it is on this one.
            open_functions: Whether a function without a policy takes events of its own account.
        """
        self._lookup = lookup
        self._invocations = invocations
        self._clock = clock
        self._new_request_id = new_request_id
        self._elsewhere = elsewhere
        self._open_functions = open_functions

    async def push(self, push_request: PushRequest) -> Attempt:
        """Take an event, if the function is there and lets the topic in."""
        elsewhere = self._elsewhere(push_request.endpoint)
        if elsewhere is not None:
            return await elsewhere.push(push_request)
        arn = push_request.endpoint
        reference, target = names.of_arn(arn), await self._lookup.at(arn)
        if reference is None or target is None:
            return missing(arn)
        source = push_request.headers.get(_SOURCE, "")
        if not may_be_invoked_for(target.function, reference.qualifier, source, is_open=self._open_functions):
            text = f"No resource-based policy of {arn} allows lambda:InvokeFunction for {source}"
            return failure(
                AttemptResult.REFUSED, Reason.DENIED, HTTPStatus.FORBIDDEN, "AccessDeniedException", text
            )
        began, request_id = self._clock.now(), self._new_request_id()
        trace = push_request.headers.get(_TRACE)
        try:
            await self._invocations.accept(target.function, reference, push_request.body, request_id, trace)
        except AwsError as error:
            reason = Reason.CLIENT_ERROR
            return failure(AttemptResult.REFUSED, reason, error.status, error.code, error.message)
        taken = self._clock.now() - began
        return Attempt(
            AttemptResult.DELIVERED,
            Reason.ACCEPTED,
            HTTPStatus.ACCEPTED,
            "",
            taken,
            (("request_id", request_id),),
        )

    async def close(self) -> None:
        """There is nothing to let go of."""
