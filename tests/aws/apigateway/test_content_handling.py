"""Conversions of bodies, by Amazon's table; binary is what has one of the API's binary media types."""

from base64 import b64encode

import pytest

from redrive.aws.apigateway.control.exchange import Refusal
from redrive.aws.apigateway.mapping.sources import TO_BINARY, TO_TEXT, decode_body, encode_body, is_binary

BYTES = b"\x89PNG\x00\xff"
TEXT = b64encode(BYTES)


@pytest.mark.parametrize(
    ("handling", "binary", "body", "wanted"),
    [
        (None, False, TEXT, TEXT),
        (TO_BINARY, False, TEXT, BYTES),
        (TO_BINARY, False, TEXT + b"\r\n", BYTES),
        (TO_TEXT, False, TEXT, TEXT),
        (None, True, BYTES, BYTES),
        (TO_BINARY, True, BYTES, BYTES),
        (TO_TEXT, True, BYTES, TEXT),
    ],
)
def test_a_body_is_converted_as_amazons_table_says(
    handling: str | None, binary: bool, body: bytes, wanted: bytes
) -> None:
    assert decode_body(encode_body(body, handling, is_binary=binary), handling, is_binary=binary) == wanted


@pytest.mark.parametrize("body", [b"{}", b"AAA", b"AA AA"])
def test_a_text_that_is_no_base64_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal):
        decode_body(body, TO_BINARY, is_binary=False)


@pytest.mark.parametrize(
    ("types", "kind", "binary"),
    [
        ([], "image/png", False),
        (["image/png"], "image/png", True),
        (["image/*"], "image/png", True),
        (["*/*"], "text/plain", True),
        (["image/png"], "image/jpeg", False),
    ],
)
def test_an_api_says_which_types_are_binary(types: list[str], kind: str, binary: bool) -> None:
    assert is_binary(types, kind) is binary
