"""The log of requests: a line for each, once it is answered. Off by default, and then nothing here is called.

A line says who asked for what, how it ended and how long that took. It holds no secret: of what a request brings, only
the id of its access key, its service and operation, and a path without its query.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from redrive.aws.wire.signatures.sigv4 import credential_scope
from redrive.model.http import Request, RequestRecord, Response
from redrive.server.connection import Handler
from redrive.server.reading import RefusedRequestError

logger = logging.getLogger(__name__)

CHARS_MAX: Final = 256  # of what a caller gave: an operation, a path, the id of a key
_FAILED: Final = 500
_OWN: Final = "/_redrive/"


class RequestLog:
    """A handler (`redrive.server.connection.Handler`) that logs what another one answers."""

    def __init__(self, handler: Handler, monotonic: Callable[[], float]) -> None:
        """Log the requests to a handler; `monotonic` tells seconds, of which only differences mean anything."""
        self._handler = handler
        self._monotonic = monotonic
        # Whatever the level of the rest is: this log has its own setting.
        logger.setLevel(logging.INFO)

    def answer(self, request: Request) -> Response | Awaitable[Response]:
        """Answer one request, and log it."""
        began, body_bytes = self._monotonic(), len(request.body)
        request.record = RequestRecord()
        return answer_observed(self._handler, request, partial(self._log, request, began, body_bytes))

    def refused(self, client_host: str, refusal: RefusedRequestError) -> None:
        """Log a request that was not a whole request: nobody answers it but the front."""
        fields = {"client": client_host, "status": refusal.status, "error": refusal.message}
        logger.info("request.refused", extra={"fields": fields})

    def _log(self, request: Request, began: float, body_bytes: int, response: Response | None) -> None:
        """Write a line about a request that has ended; None: its handler failed."""
        record, scope = request.record or RequestRecord(), credential_scope(request)
        fields = {
            "client": request.client_host,
            "account": record.account or None,
            "key": None if scope is None else scope.access_key_id[:CHARS_MAX],
            "service": record.service or ("redrive" if request.path.startswith(_OWN) else None),
            "operation": (record.operation or f"{request.method} {request.path}")[:CHARS_MAX],
            "status": _FAILED if response is None else response.status,
            "error": record.error or None,
            "ms": round((self._monotonic() - began) * 1000, 1),
            "bytes_in": body_bytes,
            "bytes_out": 0 if response is None else len(response.body),
            "request_id": record.request_id or None,
        }
        logger.info("request", extra={"fields": fields})


# A handler whose every answer is told to an observer, be it there at once, awaited, or missing for an error.

OnEnd: TypeAlias = Callable[[Response | None], None]
"""Takes the answer to a request, once; None: the handler failed, or its caller went away before the answer."""


def answer_observed(handler: Handler, request: Request, on_end: OnEnd) -> Response | Awaitable[Response]:
    """Answer one request by a handler, and tell its end."""
    try:
        reply = handler(request)
    except Exception:
        on_end(None)
        raise
    if isinstance(reply, Response):
        on_end(reply)
        return reply
    return _await_observed(reply, on_end)


async def _await_observed(reply: Awaitable[Response], on_end: OnEnd) -> Response:
    """The response, once it is there; `on_end` gets it, or None if there was an error."""
    response: Response | None = None
    try:
        response = await reply
    finally:
        on_end(response)
    return response
