"""Functions: invoked wherever a server speaks Lambda's API."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from typing_extensions import override

from redrive.endpoints.aws.calls import AwsAnswer, AwsClient, ResourceAddress, of_answer
from redrive.endpoints.verdicts import THROTTLED, TimedEndpoint, Verdict
from redrive.engine.ports import PushRequest

logger = logging.getLogger(__name__)

_EVENT: Final = "Event"
_REQUEST_RESPONSE: Final = "RequestResponse"
_PATH: Final = "/2015-03-31/functions/{}/invocations"
_TRACE: Final = "X-Amzn-Trace-Id"
_WHOLE: Final = "/invocations"


class FunctionEndpoint(TimedEndpoint):
    """Invokes a function with each request.

    A request's endpoint is the function's ARN, with or without a qualifier; its body is the event, and of its
    headers `X-Amzn-Trace-Id` goes along. Delivered is what the server has taken: what becomes of the event is its own
    affair. A server that only invokes while it is waited for is waited for, and what its function says is not looked at
    either.

    A URL that ends in `/invocations` is posted to as it is; any other gets Lambda's path.

    Args:
        now: Milliseconds, for durations.
        client: Makes the calls.
    """

    def __init__(self, now: Callable[[], int], client: AwsClient) -> None:
        super().__init__(now)
        self._client = client
        self._waited_for: set[str] = set()  # URLs whose servers know no events

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """Invoke the function as an event, or waiting for it where the server knows no events."""
        address = self._client.place(push_request.endpoint)
        if isinstance(address, Verdict):
            return address
        url = _url(address, push_request.endpoint)
        invocation_type = _REQUEST_RESPONSE if url in self._waited_for else _EVENT
        answer = await self._invoke(address, url, push_request, invocation_type)
        if invocation_type == _EVENT and isinstance(answer, AwsAnswer) and _knows_no_events(answer):
            self._waited_for.add(url)  # that server only invokes while it is waited for
            answer = await self._invoke(address, url, push_request, _REQUEST_RESPONSE)
        if isinstance(answer, Verdict):
            return answer
        if answer.function_error:
            logger.warning("function.failed function=%s: %s", push_request.endpoint, answer.text[:200])
        return _busy(answer) or of_answer(answer)

    async def _invoke(
        self, address: ResourceAddress, url: str, push_request: PushRequest, invocation_type: str
    ) -> AwsAnswer | Verdict:
        """Invoke a function by its `url`, as calls of its server (`address`) are signed."""
        headers = {"X-Amz-Invocation-Type": invocation_type}
        if _TRACE in push_request.headers:
            headers[_TRACE] = push_request.headers[_TRACE]
        return await self._client.call(
            address, PushRequest(url, push_request.body, "application/json", headers, push_request.timeout_ms)
        )


def _url(address: ResourceAddress, arn: str) -> str:
    return address.url if address.url.endswith(_WHOLE) else address.url + _PATH.format(quote(arn, safe=""))


def _knows_no_events(answer: AwsAnswer) -> bool:
    """True if it is the answer of `sam local start-lambda` until 2026 to other types than RequestResponse."""
    return answer.status == HTTPStatus.NOT_IMPLEMENTED


def _busy(answer: AwsAnswer) -> Verdict | None:
    """The verdict on a busy runtime interface emulator, which answers 400 with an empty body; None for other answers.

    Lambda's own errors always have a body.
    """
    if answer.status != HTTPStatus.BAD_REQUEST or answer.code or answer.text not in ("", "Bad Request"):
        return None
    return THROTTLED.verdict(answer.status, "The function is busy")
