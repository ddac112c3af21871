"""AWS Signature Version 4 as S3 has it: paths as they are sent, and bodies that may be signed chunk by chunk.

Source: "Authenticating Requests (AWS Signature Version 4)" of the S3 API reference, with "Signature Calculations for the
Authorization Header" for one chunk, several chunks, and trailers.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from redrive.aws.wire.signatures.aws_chunked import Chunk, ChunkedBody, is_chunked, read_chunked
from redrive.aws.wire.signatures.sigv4 import (
    Rules,
    SignatureMismatch,
    VerifiedSignature,
    payload_hash,
    signing_key,
    verify,
)
from redrive.aws.wire.signatures.sigv4_request import read_signature
from redrive.model.http import Request

_UNSIGNED_PAYLOAD: Final = "UNSIGNED-PAYLOAD"
_SIGNED_CHUNKS: Final = frozenset(
    {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"}
)
_NOT_HASHED: Final = _SIGNED_CHUNKS | {_UNSIGNED_PAYLOAD, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}
_NOTHING: Final = hashlib.sha256(b"").hexdigest()


def verify_s3(request: Request, secret_of: Callable[[str], str | None], now: int) -> VerifiedSignature:
    """Prove who signed a request to S3, and that each chunk of its body is the signer's.

    Args:
        request: As it arrived.
        secret_of: As `sigv4.verify`.
        now: Milliseconds since the epoch, UTC.

    Raises:
        SignatureRefused: One of its four kinds.
        AwsError: The body is not in the form that its head says.
    """
    signature = verify(request, secret_of, now, service="s3", rules=S3)
    if request.headers.get("x-amz-content-sha256") in _SIGNED_CHUNKS:
        secret = secret_of(signature.access_key_id) or ""
        _check_chunks(request, signature, secret, read_chunked(request))
    return signature


def _path(path: str) -> str:
    """The path as S3 signs it: encoded once, with all its segments; clients differ in the characters that they leave."""
    return quote(unquote_to_bytes(path), safe="/-_.~") or "/"


def _signed_payload(request: Request) -> str:
    """The last line of what is signed: the body's hash, or the word that stands for a body that is not hashed.

    Raises:
        SignatureRefused: A body in chunks declares another form.
    """
    declared = request.headers.get("x-amz-content-sha256")
    if declared in _NOT_HASHED:
        return declared or ""
    if declared is None and "authorization" not in request.headers:  # a presigned URL leaves the body open
        return _UNSIGNED_PAYLOAD
    if is_chunked(request):
        raise SignatureMismatch(f"The x-amz-content-sha256 {declared} is not that of a body in chunks.")
    return payload_hash(request)


S3: Final = Rules(_path, _signed_payload)


def _check_chunks(
    request: Request, verified: VerifiedSignature, secret: str, chunked_body: ChunkedBody
) -> None:
    """Verify the signature of each chunk, which continues that of the one before, and of the trailers."""
    presented = read_signature(request)
    key = signing_key(secret, verified.date, verified.region, verified.service)
    head = f"{presented.timestamp}\n{verified.date}/{verified.region}/s3/aws4_request"
    previous_signature = presented.signature
    for chunk in chunked_body.chunks:
        digest = hashlib.sha256(chunk.content).hexdigest()
        text = f"AWS4-HMAC-SHA256-PAYLOAD\n{head}\n{previous_signature}\n{_NOTHING}\n{digest}"
        previous_signature = _check_chunk(key, text, chunk)
    if chunked_body.trailer_signature is not None or "x-amz-trailer" in request.headers:
        lines = "".join(f"{name}:{value}\n" for name, value in chunked_body.trailers.items())
        digest = hashlib.sha256(lines.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256-TRAILER\n{head}\n{previous_signature}\n{digest}"
        _check_chunk(key, text, Chunk(b"", chunked_body.trailer_signature or ""))


def _check_chunk(key: bytes, text: str, chunk: Chunk) -> str:
    expected = hmac.digest(key, text.encode(), "sha256").hex()
    if not hmac.compare_digest(expected.encode(), chunk.signature.encode()):
        raise SignatureMismatch
    return expected
