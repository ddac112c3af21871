"""The body of a request without its content coding."""

import zlib

from redrive.protocols.aws.wire.errors import common
from redrive.protocols.http import Request

#: The largest body a compressed one may unfold to. CloudWatch, the one service whose SDKs compress, takes 1 MB;
#: the margin is for other services' clients, the bound is against bombs.
CONTENT_BYTES_MAX = 16 * 1024 * 1024

_GZIP = 16 + zlib.MAX_WBITS


def content(request: Request) -> bytes:
    """Return the body as it was before the client compressed it.

    Raises:
        AwsError: Not gzip though it says so, incomplete, or larger than `CONTENT_BYTES_MAX`.
    """
    coding = request.headers.get("content-encoding")
    return request.body if coding is None or coding.strip().lower() != "gzip" else _unzipped(request.body)


def _unzipped(body: bytes) -> bytes:
    unzip = zlib.decompressobj(_GZIP)
    try:
        unzipped = unzip.decompress(body, CONTENT_BYTES_MAX)
    except zlib.error as error:
        raise common("SerializationException", "The content is not gzip") from error
    if unzip.unconsumed_tail:
        raise common("SerializationException", f"The content is larger than {CONTENT_BYTES_MAX} bytes")
    if not unzip.eof:
        raise common("SerializationException", "The content is incomplete")
    return unzipped
