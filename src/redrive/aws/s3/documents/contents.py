"""Contents of objects: blobs under generated names, so that no key is ever a path."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from redrive.aws.s3.documents.records import Segment
from redrive.model.errors import NotFound
from redrive.model.http import StreamedBody

logger = logging.getLogger(__name__)
# Beside the folders of storage accounts, whose names have no hyphen.
_FOLDER: Final = "s3-objects"


class BlobKeeper(Protocol):
    """Stores blobs under names that this server generates."""

    async def put(self, path: str, content: bytes, content_type: str = "") -> str:
        """Write a blob, on disk when this returns."""
        ...

    async def read(self, path: str, first: int, length: int) -> bytes:
        """Some bytes of a blob; raises NotFound if it is not there (any more)."""
        ...

    async def stream(self, path: str, first: int, length: int) -> AsyncGenerator[bytes]:
        """As `read`, in pieces; the blob may be removed meanwhile. Raises NotFound if it is not there (any more)."""
        ...

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove blobs; those that are not there are no error."""
        ...


class ContentLost(NotFound):
    """The file of a content is absent, though an object refers to it: something else removed it, or the disk lost it."""


class _Span(NamedTuple):
    """Consecutive bytes of a blob."""

    path: str
    first: int  # The index of the first one
    length: int


def _spans(segments: Sequence[Segment], first: int, length: int) -> list[_Span]:
    """The spans of which some bytes of a content consist."""
    spans: list[_Span] = []
    for segment in segments:
        begin, end = max(first, 0), min(first + length, segment.size)
        if begin < end:
            spans.append(_Span(_path(segment.blob), begin, end - begin))
        first -= segment.size  # as the next segment counts
    return spans


class Contents:
    """Stores contents, each in segments: one for each request that supplied a part of it."""

    def __init__(self, blobs: BlobKeeper, new_id: Callable[[], str]) -> None:
        self._blobs = blobs
        self._new_id = new_id

    async def add(self, content: bytes) -> Segment:
        """Store a content, which is on disk when this returns."""
        name = self._new_id()
        await self._blobs.put(_path(name), content)
        return Segment(name, len(content))

    async def read(self, segments: Sequence[Segment], first: int, length: int) -> bytes:
        """Some bytes of a content; raises ContentLost if it does not exist any more."""
        pieces: list[bytes] = []
        for span in _spans(segments, first, length):
            try:
                pieces.append(await self._blobs.read(*span))
            except NotFound:
                raise ContentLost(span.path) from None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def stream(self, segments: Sequence[Segment], first: int, length: int) -> StreamedBody:
        """Some bytes of a content as a stream, whose first segment is open when this returns.

        Raises:
            ContentLost: The first segment does not exist any more.
        """
        first_span, *other_spans = _spans(segments, first, length)
        try:
            first_stream = await self._blobs.stream(*first_span)
        except NotFound:
            raise ContentLost(first_span.path) from None
        return StreamedBody(length, self._pieces(first_stream, other_spans))

    async def _pieces(
        self, first_stream: AsyncGenerator[bytes], other_spans: Sequence[_Span]
    ) -> AsyncGenerator[bytes]:
        """The pieces of a stream that is open, then those of other spans, each opened in its turn."""
        async with aclosing(first_stream):
            async for piece in first_stream:
                yield piece
        for span in other_spans:
            async with aclosing(await self._blobs.stream(*span)) as stream:
                async for piece in stream:
                    yield piece

    async def each(self, segments: Sequence[Segment]) -> AsyncIterator[bytes]:
        """The segments of a content; raises ContentLost if one does not exist any more."""
        for segment in segments:
            yield await self.read([segment], 0, segment.size)

    async def remove(self, blobs: Sequence[str]) -> None:
        """Remove contents that no object refers to; a failure is logged, and leaves them on disk for good."""
        try:
            await self._blobs.remove([_path(blob) for blob in blobs])
        except Exception as failure:  # noqa: BLE001 - the caller's work is done: the document is gone
            logger.warning("s3.contents_left: %d contents could not be removed: %s", len(blobs), failure)


def _path(name: str) -> str:
    return f"{_FOLDER}/{name[-2:]}/{name}"
