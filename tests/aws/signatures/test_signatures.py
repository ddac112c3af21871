"""Signatures by botocore are verified, and any change afterwards is refused."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.wire.signatures.sigv4 import SignatureMismatch, VerifiedSignature, verify
from redrive.model.http import Request
from tests.aws.signatures.signing import (
    ENDPOINT,
    KEY_ID,
    SECRET,
    SIGNED_AT,
    check,
    secret_of,
    sign,
    with_headers,
)

_segments = st.one_of(
    st.sampled_from(["", ".", "..", "~", "a b", "arn:aws:lambda", "%", "ü/é", "*"]), st.text(max_size=6)
).map(lambda text: text if text in {"", ".", ".."} else quote(text, safe="~"))
_paths = st.lists(_segments, max_size=6).map(lambda segments: "/" + "/".join(segments))
_texts = st.text(max_size=8)
_pairs = st.lists(st.tuples(st.text(min_size=1, max_size=6), _texts), max_size=5)
_encoded_queries = _pairs.map(
    lambda pairs: "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in pairs)
)
# What a user may type into a URL, and botocore signs as it stands: plus signs, bare names, odd separators.
_typed_queries = st.text(alphabet="abAB019+,:/@!*'()&=%-_.~", max_size=24)
_header_values = st.text(
    alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=20
)
_headers = st.lists(
    st.tuples(
        st.sampled_from(["X-Amz-Target", "Content-Type", "x-amz-meta-a", "X-Trace", "Accept"]), _header_values
    ),
    max_size=5,
)
_methods = st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH"])
_bodies = st.binary(max_size=64)
_tokens = st.one_of(st.none(), st.text(alphabet="AZaz09+/=", min_size=1, max_size=40))


@given(_methods, _paths, st.one_of(_encoded_queries, _typed_queries), _headers, _bodies, _tokens)
def test_verifies_what_botocore_signs_in_a_header(
    method: str, path: str, query: str, headers: list[tuple[str, str]], body: bytes, token: str | None
) -> None:
    url = f"{ENDPOINT}{path}?{query}" if query else f"{ENDPOINT}{path}"
    request = sign(method, url, headers=headers, body=body, token=token)
    assert check(request) == VerifiedSignature(KEY_ID, "20150830", "us-east-1", "sqs", presigned=False)


@given(
    _methods, _paths, st.dictionaries(st.text(min_size=1, max_size=6), _texts, max_size=4), _headers, _tokens
)
def test_verifies_what_botocore_signs_in_a_query(
    method: str, path: str, params: dict[str, str], headers: list[tuple[str, str]], token: str | None
) -> None:
    request = sign(method, ENDPOINT + path, params=params, headers=headers, token=token, expires_seconds=60)
    assert check(request) == VerifiedSignature(KEY_ID, "20150830", "us-east-1", "sqs", presigned=True)


@given(st.dictionaries(st.text(min_size=1, max_size=6), _texts, min_size=1, max_size=4))
def test_parameters_signed_with_per_cent_20_may_be_sent_with_a_plus(params: dict[str, str]) -> None:
    request = sign("GET", params={**params, "Message": "two words"})
    assert "+" in request.query
    assert check(request).access_key_id == KEY_ID


def test_the_two_readings_of_a_query_do_not_let_one_parameter_become_another() -> None:
    request = sign("GET", f"{ENDPOINT}/?Message=a%2Bb")
    with pytest.raises(SignatureMismatch):
        check(replace(request, query="Message=a+b"))


def test_a_repeated_header_is_signed_value_by_value() -> None:
    request = sign(headers=[("X-Amz-Meta-A", "  one   two "), ("x-amz-meta-a", "three")])
    assert request.headers["x-amz-meta-a"] == "one   two,three"
    assert check(request).access_key_id == KEY_ID


def test_a_date_header_serves_where_there_is_no_x_amz_date() -> None:
    request = sign(headers=[("Date", "replaced by the signer")])
    assert "x-amz-date" not in request.headers
    assert request.headers["date"] == "Sun, 30 Aug 2015 12:36:00 -0000"
    assert check(request).date == "20150830"


def test_an_unsigned_payload_is_taken_if_the_signer_said_so() -> None:
    request = sign(headers=[("X-Amz-Content-SHA256", "UNSIGNED-PAYLOAD")], body=b"one")
    assert check(replace(request, body=b"another")).access_key_id == KEY_ID


def test_an_unsigned_payload_header_added_after_signing_is_refused() -> None:
    request = with_headers(sign(body=b"one"), x_amz_content_sha256="UNSIGNED-PAYLOAD")
    with pytest.raises(SignatureMismatch):
        check(replace(request, body=b"another"))


def test_a_declared_payload_hash_must_be_the_bodys() -> None:
    declared = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"  # of b"foo"
    request = sign(headers=[("X-Amz-Content-SHA256", declared)], body=b"foo")
    assert check(request).access_key_id == KEY_ID
    with pytest.raises(SignatureMismatch):
        check(replace(request, body=b"bar"))


def test_an_unsigned_payload_hash_must_match_the_body() -> None:
    with pytest.raises(SignatureMismatch):
        check(with_headers(sign(body=b"foo"), x_amz_content_sha256="0" * 64))


_HEADERS = [("X-Amz-Target", "AmazonSQS.SendMessage"), ("Content-Type", "application/x-amz-json-1.0")]

_TAMPERINGS: dict[str, Callable[[Request], Request]] = {
    "the body": lambda request: replace(request, body=request.body + b" "),
    "the method": lambda request: replace(request, method="PUT"),
    "the path": lambda request: replace(request, path=request.path + "x"),
    "a parameter more": lambda request: replace(request, query=f"{request.query}&b=2"),
    "another parameter": lambda request: replace(request, query=request.query.replace("a=1", "a=2")),
    "the host": lambda request: with_headers(request, host="sqs.eu-west-1.example.com"),
    "the port": lambda request: with_headers(request, host="127.0.0.1:4567"),
    "no host": lambda request: with_headers(request, host=None),
    "a signed header": lambda request: with_headers(request, x_amz_target="AmazonSQS.PurgeQueue"),
    "the token": lambda request: with_headers(request, x_amz_security_token="another"),
}


@pytest.mark.parametrize("change", _TAMPERINGS.values(), ids=_TAMPERINGS.keys())
def test_a_changed_request_is_refused(change: Callable[[Request], Request]) -> None:
    request = sign(url=f"{ENDPOINT}/queue?a=1", headers=_HEADERS, body=b"{}", token="session")
    assert check(request).access_key_id == KEY_ID
    with pytest.raises(SignatureMismatch, match="request signature we calculated does not match"):
        check(change(request))


@pytest.mark.parametrize(
    "part", ["the body", "the method", "the path", "a parameter more", "the host", "no host"]
)
def test_a_changed_presigned_request_is_refused(part: str) -> None:
    request = sign("GET", f"{ENDPOINT}/queue?a=1", expires_seconds=60)
    assert check(request).presigned
    with pytest.raises(SignatureMismatch):
        check(_TAMPERINGS[part](request))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("us-east-1", "eu-west-1"),
        ("/sqs/", "/sns/"),
        ("SignedHeaders=host;x-amz-date", "SignedHeaders=host"),
        ("Signature=", "Signature=0"),
    ],
)
def test_a_changed_authorization_is_refused(old: str, new: str) -> None:
    request = sign()
    changed = request.headers["authorization"].replace(old, new)
    assert changed != request.headers["authorization"]
    with pytest.raises(SignatureMismatch):
        check(with_headers(request, authorization=changed))


@pytest.mark.parametrize("name", ["X-Amz-Expires=60", "us-east-1", "20150830T123600Z"])
def test_a_changed_presigned_parameter_is_refused(name: str) -> None:
    request = sign("GET", expires_seconds=60)
    changed = {"X-Amz-Expires=60": "X-Amz-Expires=61", "us-east-1": "eu-west-1"}.get(name, "20150830T123601Z")
    assert name in request.query
    with pytest.raises(SignatureMismatch):
        check(replace(request, query=request.query.replace(name, changed)))


def test_a_signature_made_with_another_secret_is_refused_after_the_first_was_cached() -> None:
    request = sign()
    check(request)
    with pytest.raises(SignatureMismatch):
        verify(request, lambda _: SECRET[::-1], SIGNED_AT)
    assert verify(request, secret_of, SIGNED_AT).access_key_id == KEY_ID
