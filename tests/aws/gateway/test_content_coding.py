"""Compressed bodies: of the one service whose clients compress, and no larger than its bodies are."""

import gzip

import pytest

from redrive.aws.gateway.gateway import decompress
from redrive.aws.gateway.recognise import is_compressed
from redrive.aws.services import FOLDERS
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.profiles import profile_of
from redrive.model.http import Request

CLOUDWATCH = profile_of("cloudwatch")
MOST = CLOUDWATCH.body_bytes_max


def compressed(body: bytes) -> Request:
    return Request("POST", "/", "", {"content-encoding": " GZIP"}, body)


def test_compressed_bodies_are_unfolded() -> None:
    request = compressed(gzip.compress(bytes(MOST), mtime=0))
    assert is_compressed(request)
    decompress(request, CLOUDWATCH)
    assert (request.body, is_compressed(request)) == (bytes(MOST), False)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"plain", "The content is not gzip"),
        (gzip.compress(b"{}", mtime=0)[:-9], "The content is incomplete"),
        (gzip.compress(bytes(MOST + 1), mtime=0), f"The content is larger than {MOST} bytes"),
    ],
)
def test_compressed_bodies_that_cannot_be_unfolded(body: bytes, message: str) -> None:
    with pytest.raises(AwsError) as refused:
        decompress(compressed(body), CLOUDWATCH)
    assert (refused.value.code, refused.value.message) == ("SerializationException", message)


@pytest.mark.parametrize("service", sorted(FOLDERS.keys() - {"cloudwatch"}))
def test_no_other_service_takes_them(service: str) -> None:
    with pytest.raises(AwsError, match="takes no compressed content"):
        decompress(compressed(gzip.compress(b"{}")), profile_of(service))
