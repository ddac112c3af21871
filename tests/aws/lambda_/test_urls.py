"""Function URLs without a server: answers as responses, bodies as events, hosts as ids."""

from typing import Any

import orjson
import pytest

from redrive.access.principals import account_root
from redrive.aws.lambda_.documents.records import UrlTarget, target_of, url_text
from redrive.aws.lambda_.urls.events import AnswerMalformed, event_of, response_of
from redrive.model.http import Request

ID = "abcdefghijklmnopqrstuvwxyz012345"
JSON = "application/json"


@pytest.mark.parametrize(
    ("payload", "status", "body", "content_type"),
    [
        (b'"hello"', 200, b"hello", JSON),
        (b'{"car": 1}', 200, b'{"car": 1}', JSON),
        (b"[1, 2]", 200, b"[1, 2]", JSON),
        (b"null", 200, b"null", JSON),
        (b'{"statusCode": 204}', 204, b"", JSON),
        (b'{"statusCode": "418", "body": "tea"}', 418, b"tea", JSON),
        (b'{"statusCode": 200, "body": {"car": 1}}', 200, b'{"car":1}', JSON),
        (b'{"statusCode": 200, "body": "aGk=", "isBase64Encoded": true}', 200, b"hi", JSON),
        (b'{"statusCode": 200, "headers": {"content-TYPE": "text/html"}}', 200, b"", "text/html"),
        (b'{"statusCode": 302, "headers": {"Location": "/x", "Content-Length": 9}}', 302, b"", JSON),
        (b'{"statusCode": 201}' + bytes(8) + b"streamed", 201, b"streamed", JSON),
        (b"\xff\xfe", 200, b"\xff\xfe", "application/octet-stream"),
    ],
)
def test_an_answer_is_a_response(payload: bytes, status: int, body: bytes, content_type: str) -> None:
    response = response_of(payload)
    assert (response.status, response.body, response.content_type) == (status, body, content_type)
    assert {"content-length", "content-type"}.isdisjoint(name.lower() for name in response.headers)


@pytest.mark.parametrize(
    "answer",
    [
        {"statusCode": None},
        {"statusCode": True},
        {"statusCode": 99},
        {"statusCode": 600},
        {"statusCode": 200, "headers": ["X-Car"]},
        {"statusCode": 200, "headers": {"X-Car": "1\r\nX-Truck: 2"}},
        {"statusCode": 200, "headers": {"X Car": "1"}},
        {"statusCode": 200, "headers": {"X-Car": "é"}},
        {"statusCode": 200, "cookies": "a=1"},
        {"statusCode": 200, "body": "no base64", "isBase64Encoded": True},
    ],
)
def test_a_malformed_answer_is_told_apart(answer: dict[str, Any]) -> None:
    with pytest.raises(AnswerMalformed):
        response_of(orjson.dumps(answer))


@pytest.mark.parametrize(
    ("content_type", "body", "expected", "coded"),
    [
        ("text/plain; charset=utf-8", "é".encode(), "é", False),
        ("application/vnd.car+json", b"{}", "{}", False),
        ("application/x-www-form-urlencoded", b"a=1", "YT0x", True),
        ("text/plain", b"\xff", "/w==", True),
        ("", b"a", "YQ==", True),
    ],
)
def test_a_body_is_text_or_base64(content_type: str, body: bytes, expected: str, coded: bool) -> None:
    request = Request("POST", "/", "", {"host": "h", "content-type": content_type}, body)
    event = orjson.loads(event_of(request, UrlTarget(ID, "/", "h"), None, 0, "r"))
    assert (event["body"], event["isBase64Encoded"]) == (expected, coded)


def test_the_signer_stands_in_the_event() -> None:
    request = Request("GET", "/", "", {"host": "h:80"}, b"")
    caller = account_root("123456789012")
    context = orjson.loads(event_of(request, UrlTarget(ID, "/", "h"), caller, 1_583_348_638_390, "r"))[
        "requestContext"
    ]
    assert context["time"] == "04/Mar/2020:19:03:58 +0000"
    assert context["authorizer"]["iam"] == {
        "accountId": "123456789012",
        "callerId": "123456789012",
        "cognitoIdentity": None,
        "principalOrgId": None,
        "userArn": "arn:aws:iam::123456789012:root",
        "userId": "123456789012",
    }


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://127.0.0.1:4566", f"http://{ID}.lambda-url.eu-west-1.localhost:4566/"),
        ("http://[::1]:4566", f"http://{ID}.lambda-url.eu-west-1.localhost:4566/"),
        ("https://localhost", f"https://{ID}.lambda-url.eu-west-1.localhost/"),
        ("http://redrive:4566", f"http://redrive:4566/_redrive/function-url/{ID}/"),
        ("http://10.0.0.5:4566", f"http://10.0.0.5:4566/_redrive/function-url/{ID}/"),
        ("https://events.example.com", f"https://events.example.com/_redrive/function-url/{ID}/"),
    ],
)
def test_a_url_leads_back_to_its_id(base_url: str, expected: str) -> None:
    url = url_text(base_url, ID, "eu-west-1")
    assert url == expected
    host, _, path = url.partition("://")[2].partition("/")
    target = target_of(Request("GET", f"/{path}", "", {"host": host}, b""))
    assert target is not None
    assert (target.id, target.path) == (ID, "/")
