"""Pushes over HTTP: an answer and its verdict, and the push that takes no task."""

import asyncio
import zlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from redrive.endpoints import verdicts
from redrive.endpoints.http_connection import HttpConnection, UnansweredError, WebAnswer
from redrive.endpoints.http_pool import HttpConnections, WebOrigin
from redrive.endpoints.verdicts import FORBIDDEN, Verdict
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt

_INFLATED: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class WebhookAnswer(NamedTuple):
    """An endpoint's answer."""

    status: int
    text: str  # The beginning of its body, or the reason phrase
    challenges: list[str]  # WWW-Authenticate headers
    kept: tuple[tuple[str, str], ...]  # Requested response headers


def answer_of(web_answer: WebAnswer, push_request: PushRequest) -> WebhookAnswer:
    """An answer as far as a push asks for it."""
    body = web_answer.body
    if body:
        encoding = ",".join(values_of(web_answer, b"content-encoding"))
        body = _inflated(body, encoding, push_request.answer_bytes_max)
    text = body.decode("utf-8", "replace") or text_of(web_answer.phrase)
    unauthorized = web_answer.status == HTTPStatus.UNAUTHORIZED
    challenges = values_of(web_answer, b"www-authenticate") if unauthorized else []
    headers_kept = tuple(
        (name, values[0])
        for name in push_request.headers_kept
        if (values := values_of(web_answer, name.lower().encode()))
    )
    return WebhookAnswer(web_answer.status, text, challenges, headers_kept)


def values_of(web_answer: WebAnswer, name: bytes) -> list[str]:
    """The values of a header, whose name is in lower case."""
    return [text_of(value).strip() for other, value in web_answer.headers if other == name]


def text_of(raw: bytes) -> str:
    """A phrase, or what stands in a header, whatever bytes it has."""
    return raw.decode("utf-8", "surrogateescape")


def _inflated(body: bytes, encoding: str, bytes_max: int) -> bytes:
    """The beginning of a compressed body, inflated; a body that cannot be inflated stays as it is."""
    window_bits = _INFLATED.get(encoding.strip().lower())
    if window_bits is None:
        return body
    try:
        return zlib.decompressobj(window_bits).decompress(body, bytes_max)
    except zlib.error:
        return body


def verdict_of(answer: WebhookAnswer) -> Verdict:
    """The verdict that an answer is for a delivery."""
    return verdicts.of_status(answer.status, answer.text, identifiers=answer.kept)


def verdict_of_failure(error: Exception) -> Verdict:
    """The same of an exception that ended a push; what is forbidden cannot be made."""
    return verdicts.of_failure(error, unusable=FORBIDDEN)


class DirectPush:
    """A push over a connection that had rested, without a task.

    Where the other end had closed the connection meanwhile, the request is sent again in the usual way, as it is by
    `HttpEndpoint.push`.
    """

    __slots__ = (
        "_again",
        "_began",
        "_connection",
        "_connections",
        "_now",
        "_origin",
        "_push",
        "_push_request",
        "_take",
    )

    def __init__(
        self,
        now: Callable[[], int],
        push: Callable[[PushRequest], Coroutine[Any, Any, Attempt]],
        connections: HttpConnections,
        origin: WebOrigin,
        connection: HttpConnection,
        push_request: PushRequest,
        take: Callable[[Attempt], None],
    ) -> None:
        self._now = now
        self._push = push
        self._connections = connections
        self._origin = origin
        self._connection = connection
        self._push_request = push_request
        self._take = take
        self._began = now()
        self._again: asyncio.Task[Attempt] | None = None

    def begin(self, head: bytes) -> Callable[[], None] | None:
        """Send the request; a function that gives it up, or None: the connection has ended."""
        of = self._push_request
        try:
            self._connection.begin(
                of.method, head, of.body, of.answer_bytes_max, of.timeout_ms / 1000, self._end
            )
        except UnansweredError:
            self._connections.give_back(self._origin, self._connection)
            return None
        return self._give_up

    def _end(self, outcome: WebAnswer | Exception) -> None:
        self._connections.give_back(self._origin, self._connection)
        if isinstance(outcome, UnansweredError):
            self._again = asyncio.get_running_loop().create_task(self._push(self._with_time_left()))
            self._again.add_done_callback(self._end_again)
            return
        if isinstance(outcome, WebAnswer):
            verdict = verdict_of(answer_of(outcome, self._push_request))
        else:
            verdict = verdict_of_failure(outcome)
        self._take(verdict.after(self._now() - self._began))

    def _with_time_left(self) -> PushRequest:
        gone_ms = self._now() - self._began
        return replace(self._push_request, timeout_ms=max(0, self._push_request.timeout_ms - gone_ms))

    def _end_again(self, again: asyncio.Task[Attempt]) -> None:
        if not again.cancelled():
            self._take(replace(again.result(), duration_ms=self._now() - self._began))

    def _give_up(self) -> None:
        if self._again is not None:
            self._again.remove_done_callback(self._end_again)
            self._again.cancel()
            return
        self._connection.cancel()
        self._connections.give_back(self._origin, self._connection)
