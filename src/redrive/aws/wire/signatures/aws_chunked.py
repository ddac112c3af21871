"""Bodies in S3's own chunks, `aws-chunked`: each with its length, some signed, and trailers behind the last."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from redrive.aws.wire.errors import AwsError
from redrive.model.http import Request

_BEGINNING: Final = "STREAMING-"
_LINE: Final = re.compile(rb"([0-9a-fA-F]{1,8})(?:;chunk-signature=([0-9a-f]{64}))?\r\n")
_LINE_BYTES_MAX: Final = 128
_TRAILER: Final = re.compile(rb"([A-Za-z0-9-]{1,64}):[ \t]*([!-~]{0,128})[ \t]*\r?\n")
_TRAILERS_MAX: Final = 8
#: AWS wants 8 KiB of each chunk but the last; smaller ones would be a hash each.
_CHUNKS_MAX: Final = 4096
_TRAILER_SIGNATURE: Final = "x-amz-trailer-signature"


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk, and its signature; empty if it has none."""

    content: bytes
    signature: str


@dataclass(frozen=True, slots=True)
class ChunkedBody:
    """A body that came in chunks."""

    chunks: tuple[Chunk, ...]  # With the empty one at the end
    trailers: Mapping[str, str]  # By their names in lower case
    trailer_signature: str | None  # Theirs, if they are signed

    @property
    def content(self) -> bytes:
        """The content of all chunks."""
        return b"".join(chunk.content for chunk in self.chunks)


def is_chunked(request: Request) -> bool:
    """True if a request's body is in chunks of S3's."""
    return request.headers.get("x-amz-content-sha256", "").startswith(_BEGINNING)


def read_chunked(request: Request) -> ChunkedBody:
    """Take a body in chunks apart; only form and length are verified. Raises AwsError."""
    chunks, rest = _read_chunks(request.body)
    trailers = dict(_trailers(rest))
    signature = trailers.pop(_TRAILER_SIGNATURE, None)
    declared_trailers = request.headers.get("x-amz-trailer", "").lower().replace(" ", "")
    if trailers.keys() != set(filter(None, declared_trailers.split(","))):
        raise _malformed_trailer()
    chunked_body = ChunkedBody(chunks, trailers, signature)
    declared_length = request.headers.get("x-amz-decoded-content-length", "")
    if declared_length != str(sum(len(chunk.content) for chunk in chunks)):
        raise _incomplete()
    return chunked_body


def _read_chunks(body: bytes) -> tuple[tuple[Chunk, ...], bytes]:
    """The chunks of a body, and what stands behind the last of them."""
    chunks: list[Chunk] = []
    position = 0
    while not chunks or chunks[-1].content:
        line = _LINE.match(body, position, position + _LINE_BYTES_MAX)
        if line is None or len(chunks) >= _CHUNKS_MAX:
            raise _incomplete()
        size_text, signature = line.groups()
        end = line.end() + int(size_text, 16)
        content = body[line.end() : end]
        if content and body[end : end + 2] != b"\r\n":
            raise _incomplete()
        chunks.append(Chunk(content, (signature or b"").decode()))
        if not content and end != line.end():  # the body ends before the chunk does
            raise _incomplete()
        position = end + 2 if content else end
    return tuple(chunks), body[position:]


def _trailers(rest: bytes) -> Iterator[tuple[str, str]]:
    """The trailers, each on its own line, before an empty line or the end."""
    position = 0
    for _ in range(_TRAILERS_MAX):
        line = _TRAILER.match(rest, position)
        if line is None:
            break
        yield line[1].decode().lower(), line[2].decode()
        position = line.end()
        if rest.startswith(b"\r\n" + _TRAILER_SIGNATURE.encode(), position):
            position += 2  # Java's SDK has an empty line before the signature
    if rest[position:] not in (b"", b"\r\n", b"\r\n\r\n"):
        raise _malformed_trailer()


def _malformed_trailer() -> AwsError:
    text = "The request contained trailing data that was not well-formed or did not conform to our published schema."
    return AwsError("MalformedTrailerError", text)


def _incomplete() -> AwsError:
    return AwsError(
        "IncompleteBody",
        "The request body terminated unexpectedly: it is not in the chunks that its head declares",
    )
