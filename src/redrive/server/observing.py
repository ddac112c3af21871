"""A handler whose every answer is told to an observer, be it there at once, awaited, or missing for an error."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from redrive.model.http import Request, Response
from redrive.server.connection import Handler

Ended: TypeAlias = Callable[[Response | None], None]
"""Takes the answer to a request, once; None: the handler failed, or its caller went away before the answer."""


def observed(handler: Handler, request: Request, ended: Ended) -> Response | Awaitable[Response]:
    """Answer one request by a handler, and tell its end."""
    try:
        reply = handler(request)
    except Exception:
        ended(None)
        raise
    if isinstance(reply, Response):
        ended(reply)
        return reply
    return _awaited(reply, ended)


async def _awaited(reply: Awaitable[Response], ended: Ended) -> Response:
    answered: Response | None = None
    try:
        answered = await reply
    finally:
        ended(answered)
    return answered
