"""Functions: invoked wherever a server speaks Lambda's API."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from redrive.endpoints.aws import verdicts as aws_verdicts
from redrive.endpoints.aws.calls import AwsClient, Place
from redrive.endpoints.aws.verdicts import AwsAnswer
from redrive.endpoints.timed import TimedEndpoint
from redrive.endpoints.verdicts import THROTTLED, Verdict
from redrive.engine.ports import Parcel

logger = logging.getLogger(__name__)

_EVENT: Final = "Event"
_REQUEST_RESPONSE: Final = "RequestResponse"
_PATH: Final = "/2015-03-31/functions/{}/invocations"
_TRACE: Final = "X-Amzn-Trace-Id"
_WHOLE: Final = "/invocations"


class FunctionEndpoint(TimedEndpoint):
    """Invokes a function with each parcel.

    A parcel's endpoint is the function's ARN, with or without a qualifier; its body is the event, and of its
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

    async def _verdict(self, parcel: Parcel) -> Verdict:
        place = self._client.place(parcel.endpoint)
        if isinstance(place, Verdict):
            return place
        url = _url(place, parcel.endpoint)
        kind = _REQUEST_RESPONSE if url in self._waited_for else _EVENT
        answer = await self._invoke(place, url, parcel, kind)
        if kind == _EVENT and isinstance(answer, AwsAnswer) and _knows_no_events(answer):
            self._waited_for.add(url)
            answer = await self._invoke(place, url, parcel, _REQUEST_RESPONSE)
        if isinstance(answer, Verdict):
            return answer
        if answer.function_error:
            logger.warning("function.failed function=%s: %s", parcel.endpoint, answer.text[:200])
        return _busy(answer) or aws_verdicts.of_answer(answer)

    async def _invoke(self, place: Place, url: str, parcel: Parcel, kind: str) -> AwsAnswer | Verdict:
        headers = {"X-Amz-Invocation-Type": kind}
        if _TRACE in parcel.headers:
            headers[_TRACE] = parcel.headers[_TRACE]
        return await self._client.call(
            place, Parcel(url, parcel.body, "application/json", headers, parcel.timeout_ms)
        )


def _url(place: Place, arn: str) -> str:
    return place.url if place.url.endswith(_WHOLE) else place.url + _PATH.format(quote(arn, safe=""))


def _knows_no_events(answer: AwsAnswer) -> bool:
    """What `sam local start-lambda` said until 2026 of invocation types besides RequestResponse."""
    return answer.status == HTTPStatus.NOT_IMPLEMENTED


def _busy(answer: AwsAnswer) -> Verdict | None:
    """What the runtime interface emulator says while it invokes for somebody else: 400, and not a word.

    Lambda itself never does without one.
    """
    if answer.status != HTTPStatus.BAD_REQUEST or answer.code or answer.text not in ("", "Bad Request"):
        return None
    return THROTTLED.verdict(answer.status, "The function is busy")
