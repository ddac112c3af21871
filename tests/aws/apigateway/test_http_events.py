"""Events of HTTP APIs in payload format 2.0: bodies and signers as function URLs have them."""

from typing import Any

import orjson
import pytest

from redrive.access.principals import account_root
from redrive.aws.apigateway.control.exchange import Exchange, StagePlace
from redrive.aws.apigateway.control.targets import InvokeTarget
from redrive.aws.apigateway.requests.function_proxy import event_v2_of
from redrive.model.http import Request

ACCOUNT = "123456789012"


def _event(exchange: Exchange) -> dict[str, Any]:
    event: dict[str, Any] = orjson.loads(event_v2_of(exchange))
    return event


def _exchange(content_type: str, body: bytes) -> Exchange:
    request = Request("POST", "/cars", "", {"host": "h", "content-type": content_type}, body)
    place = StagePlace(ACCOUNT, "us-east-1", "rental", "Rental", "$default")
    return Exchange(request, InvokeTarget("rental", "/cars", "rental.host", ""), place, "/cars", "id", 0)


@pytest.mark.parametrize(
    ("content_type", "body", "expected", "coded"),
    [
        ("application/json", b"{}", "{}", False),
        ("application/x-www-form-urlencoded", b"a=1", "YT0x", True),
        ("", b"a", "YQ==", True),
    ],
)
def test_a_body_that_is_no_text_by_its_type_is_base64(
    content_type: str, body: bytes, expected: str, coded: bool
) -> None:
    event = _event(_exchange(content_type, body))
    assert (event["body"], event["isBase64Encoded"]) == (expected, coded)


def test_the_signer_stands_in_the_event_as_at_function_urls() -> None:
    exchange = _exchange("text/plain", b"")
    exchange.caller = account_root(ACCOUNT)
    context = _event(exchange)["requestContext"]
    assert (context["domainPrefix"], context["stage"]) == ("rental", "$default")
    assert context["authorizer"]["iam"] == {
        "accountId": ACCOUNT,
        "callerId": ACCOUNT,
        "cognitoIdentity": None,
        "principalOrgId": None,
        "userArn": f"arn:aws:iam::{ACCOUNT}:root",
        "userId": ACCOUNT,
    }
