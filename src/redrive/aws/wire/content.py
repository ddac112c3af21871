"""The body of a request without its content coding."""

import zlib

from redrive.aws.wire.errors import common
from redrive.aws.wire.profiles import Profile
from redrive.model.http import Request

_GZIP = 16 + zlib.MAX_WBITS


def is_compressed(request: Request) -> bool:
    """True if the client compressed the body."""
    coding = request.headers.get("content-encoding")
    return coding is not None and coding.strip().lower() == "gzip"


def decompress(request: Request, profile: Profile) -> None:
    """Put the body in the place of what the client compressed; to be done for known callers alone.

    Raises:
        AwsError: `SerializationException`: the service takes nothing compressed, or it is not gzip though it says so,
            incomplete, or larger than the service's bodies may be.
    """
    if not profile.takes_gzip:
        raise common("SerializationException", "This service takes no compressed content")
    unzip = zlib.decompressobj(_GZIP)
    try:
        unzipped = unzip.decompress(request.body, profile.body_bytes_max)
    except zlib.error as error:
        raise common("SerializationException", "The content is not gzip") from error
    if unzip.unconsumed_tail:
        raise common("SerializationException", f"The content is larger than {profile.body_bytes_max} bytes")
    if not unzip.eof:
        raise common("SerializationException", "The content is incomplete")
    request.body = unzipped
    del request.headers["content-encoding"]
