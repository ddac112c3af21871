"""The forms a request is put in before it is hashed, as botocore's `SigV4Auth` and `SigV4QueryAuth` put it.

A path is normalised and encoded twice. S3's other rules are not here: no facade speaks S3.
"""

import hashlib
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from redrive.protocols.aws.wire.sigv4_refusals import SignatureMismatch
from redrive.protocols.http import Request

_UNSIGNED_PAYLOAD: Final = "UNSIGNED-PAYLOAD"


def canonical_digests(request: Request, query: str, signed_headers: str) -> Iterator[str]:
    """The SHA-256, in hexadecimal, of each canonical request the signer may have meant.

    Args:
        request: As it arrived.
        query: Its query, without a signature in it.
        signed_headers: The names of the headers that were signed, as the signer listed them.

    Raises:
        SignatureMismatch: The body is not the one whose hash the request declares.
    """
    head = f"{request.method}\n{_canonical_path(request.path)}\n"
    tail = f"\n{_canonical_headers(request, signed_headers)}\n{_payload_hash(request)}"
    for canonical_query in _canonical_queries(query):
        yield hashlib.sha256(f"{head}{canonical_query}{tail}".encode()).hexdigest()


def _canonical_path(path: str) -> str:
    if path in ("", "/"):
        return "/"
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    first = "/" if path.startswith("/") else ""
    last = "/" if kept and path.endswith("/") else ""
    # The wire's path is encoded once already, so this quotes its per cent signs: the second encoding.
    return quote(f"{first}{'/'.join(kept)}{last}", safe="/~")


def _canonical_queries(query: str) -> Iterator[str]:
    """The query as it may have been signed: as it stands on the wire, and as AWS would have encoded it.

    A client that signs `a b` as `a%20b` may still send `a+b`, and one that signs the URL it was given may leave
    in it what AWS encodes. Both readings say the same to a parser, so accepting either lets nothing be changed.
    """
    if not query:
        yield ""
        return
    pairs = [(name, value) for name, _, value in (piece.partition("=") for piece in query.split("&"))]
    as_sent = _joined(pairs)
    yield as_sent
    as_encoded = _joined([(_encoded(name), _encoded(value)) for name, value in pairs])
    if as_encoded != as_sent:
        yield as_encoded


def _joined(pairs: list[tuple[str, str]]) -> str:
    return "&".join([f"{name}={value}" for name, value in sorted(pairs)])


def _encoded(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~")


def _canonical_headers(request: Request, signed_headers: str) -> str:
    headers = request.headers
    lines = [f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed_headers.split(";")]
    return f"{''.join(lines)}\n{signed_headers}"


def _payload_hash(request: Request) -> str:
    """The hash the signer must have used: the body's, or the word by which the signer left the body out.

    The word is part of what was signed, so nobody else can put it there.
    """
    declared = request.headers.get("x-amz-content-sha256")
    if declared == _UNSIGNED_PAYLOAD:
        return declared
    actual = hashlib.sha256(request.body).hexdigest()
    if declared is not None and declared != actual:
        raise SignatureMismatch
    return actual
