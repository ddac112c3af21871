"""Streamed answers of function URLs: the head that the function writes first, and the body as it comes."""

from collections.abc import AsyncIterator
from typing import Final

from redrive.aws.lambda_.invocations.streams import AnswerBroken, AnswerStream
from redrive.aws.lambda_.urls.events import PRELUDE_END, AnswerMalformed, head_of, response_of
from redrive.model.http import Response

#: What a function's runtime calls an answer that begins with its head.
_WITH_HEAD: Final = "application/vnd.awslambda.http-integration-response"
_HEAD_BYTES_MAX: Final = 64 * 1024


async def streamed_response(stream: AnswerStream) -> Response | None:
    """The response that a stream is the body of; None: the function failed before it wrote any.

    A function that does not stream answers as one of a URL in the mode BUFFERED does.

    Raises:
        AnswerMalformed: It has no head where it says that it has one.
        Throttled: It was not run.
    """
    await stream.started()
    if not stream.begun:
        result = await stream.result()
        return None if result.failed else response_of(result.payload)
    parts = stream.parts()
    if not stream.content_type.startswith(_WITH_HEAD):
        first = await anext(parts, None)
        if first is None and (await stream.result()).failed:
            return None
        content_type = stream.content_type or "application/octet-stream"
        return Response(200, b"", content_type, parts=_whole(stream, first or b"", parts))
    read = b""
    while PRELUDE_END not in read:
        part = await anext(parts, None)
        if part is None and (await stream.result()).failed:
            return None
        if part is None or len(read) > _HEAD_BYTES_MAX:
            raise AnswerMalformed
        read += part
    head, _, body = read.partition(PRELUDE_END)
    response = head_of(head)
    response.parts = _whole(stream, body, parts)
    return response


async def _whole(stream: AnswerStream, first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A body, which is cut off where the function failed in its middle."""
    yield first
    async for part in rest:
        yield part
    if (await stream.result()).failed:
        raise AnswerBroken
