"""Requests whose signatures were worked out elsewhere, so that signer and verifier cannot err together."""

import hashlib
import hmac

import pytest

from redrive.aws.wire.signatures.sigv4 import SignatureMismatch, verify
from redrive.model.http import Request
from tests.aws.signatures.signing import SIGNED_AT

_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
_KEY = "AKIDEXAMPLE"
_SCOPE = "20150830/us-east-1/service/aws4_request"
_TIMESTAMP = "20150830T123600Z"
_NO_BODY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

_VANILLA = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
_SORTED_QUERY = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
_POST_VANILLA = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"


def _request(
    method: str, path: str, query: str, headers: dict[str, str], body: bytes, signature: str
) -> Request:
    sent = {"host": "example.amazonaws.com", "x-amz-date": _TIMESTAMP, **headers}
    names = ";".join(sorted(sent))
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={_KEY}/{_SCOPE}, SignedHeaders={names}, Signature={signature}"
    )
    return Request(method, path, query, {**sent, "authorization": authorization}, body)


def _access_key_id(request: Request) -> str:
    return verify(request, lambda _: _SECRET, SIGNED_AT, region="us-east-1", service="service").access_key_id


@pytest.mark.parametrize(
    ("method", "path", "query", "signature"),
    [
        pytest.param("GET", "/", "", _VANILLA, id="get-vanilla"),
        pytest.param("GET", "/", "Param2=value2&Param1=value1", _SORTED_QUERY, id="get-query-order-key-case"),
        pytest.param("POST", "/", "", _POST_VANILLA, id="post-vanilla"),
        pytest.param("GET", "//", "", _VANILLA, id="get-slash"),
        pytest.param("GET", "/example/..", "", _VANILLA, id="get-relative"),
    ],
)
def test_a_signature_of_the_published_suite_is_verified(
    method: str, path: str, query: str, signature: str
) -> None:
    request = _request(method, path, query, {}, b"", signature)
    assert _access_key_id(request) == _KEY
    with pytest.raises(SignatureMismatch):
        verify(request, lambda _: _SECRET + "x", SIGNED_AT)


def _sign(canonical_request: str) -> str:
    """The recipe of AWS's documentation, step by step."""
    key = b"AWS4" + _SECRET.encode()
    for part in _SCOPE.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    digest = hashlib.sha256(canonical_request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{_TIMESTAMP}\n{_SCOPE}\n{digest}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


_HEADERS = f"host:example.amazonaws.com\nx-amz-date:{_TIMESTAMP}\n"
_NAMES = "host;x-amz-date"


@pytest.mark.parametrize(
    ("path", "query", "canonical"),
    [
        ("/%E1%88%B4", "", f"GET\n/%25E1%2588%25B4\n\n{_HEADERS}\n{_NAMES}\n{_NO_BODY}"),
        ("/a//b/./c/", "", f"GET\n/a/b/c/\n\n{_HEADERS}\n{_NAMES}\n{_NO_BODY}"),
        ("/arn%3Aaws%3Asns", "", f"GET\n/arn%253Aaws%253Asns\n\n{_HEADERS}\n{_NAMES}\n{_NO_BODY}"),
        ("/-_.~AZaz09", "", f"GET\n/-_.~AZaz09\n\n{_HEADERS}\n{_NAMES}\n{_NO_BODY}"),
        ("/", "b=2&a=1&a=0&B=3", f"GET\n/\nB=3&a=0&a=1&b=2\n{_HEADERS}\n{_NAMES}\n{_NO_BODY}"),
        ("/", "flag&empty=", f"GET\n/\nempty=&flag=\n{_HEADERS}\n{_NAMES}\n{_NO_BODY}"),
        ("/", "m=a+b%20c", f"GET\n/\nm=a%20b%20c\n{_HEADERS}\n{_NAMES}\n{_NO_BODY}"),
        ("/", "m=%e1%88%b4", f"GET\n/\nm=%E1%88%B4\n{_HEADERS}\n{_NAMES}\n{_NO_BODY}"),
        ("/", "arn=arn:aws:sns", f"GET\n/\narn=arn%3Aaws%3Asns\n{_HEADERS}\n{_NAMES}\n{_NO_BODY}"),
    ],
)
def test_canonical_paths_and_queries(path: str, query: str, canonical: str) -> None:
    assert _access_key_id(_request("GET", path, query, {}, b"", _sign(canonical))) == _KEY


def test_canonical_headers_and_body() -> None:
    body = b"Action=SendMessage"
    canonical = (
        "POST\n/\n\ncontent-type:application/x-www-form-urlencoded; charset=utf-8\n"
        f"{_HEADERS}x-amz-meta:a b,c\n\ncontent-type;{_NAMES};x-amz-meta\n{hashlib.sha256(body).hexdigest()}"
    )
    headers = {
        "content-type": "application/x-www-form-urlencoded;   charset=utf-8",
        "x-amz-meta": "  a \t b,c ",
    }
    assert _access_key_id(_request("POST", "/", "", headers, body, _sign(canonical))) == _KEY
