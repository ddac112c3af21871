"""Mail addresses that a subscriber chooses: refused when subscribed, and an attempt in any case, never an exception."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.aws.sns.documents.destinations import check_endpoint
from redrive.aws.wire.errors import AwsError
from redrive.endpoints.email import EmailEndpoint, Relay
from redrive.engine.ports import PushRequest
from redrive.model.attempt import AttemptResult, Reason
from redrive.model.names import ResourceName
from redrive.model.topic import Topic

SPECIAL = (
    "<a@b.example>",
    "a@b.example>",
    "Ann <a@b.example>",
    "a@b.example,c@d.example",
    "a;b@c.example",
    "(a)b@c.example",
)
CONTROLS = (
    "a\r\nRCPT@b.example",
    "a\0@b.example",
    "a@b.example\n",
    '"a b"@c.example',
    "a..b@c.example",
    ".a@c.example",
)
TOPIC = Topic(1, ResourceName("000000000000", "us-east-1", "news"), "sns")
PRINTED = "ab.@<>()[],;:\\\"\u00e4 \r\n\0-_=?!#'*%{"


def relay() -> EmailEndpoint:
    """One that is not there; what cannot be written does not even ask for it."""
    return EmailEndpoint(lambda: 0, Relay("127.0.0.1", 1, "redrive@redrive.test"))


@pytest.mark.parametrize("address", [*SPECIAL, *CONTROLS])
@pytest.mark.parametrize("protocol", ["email", "email-json"])
def test_an_address_with_more_than_a_mailbox_is_not_subscribed(address: str, protocol: str) -> None:
    with pytest.raises(AwsError, match="Email address"):
        check_endpoint(TOPIC, protocol, address)


@pytest.mark.parametrize(
    "address", ["ann@example.org", "a.b+c@mail.example.org", "o'neil@example.org", "x_y-z=1@a-b.example"]
)
def test_a_mailbox_is_subscribed(address: str) -> None:
    check_endpoint(TOPIC, "email", address)


@pytest.mark.parametrize("address", [*SPECIAL, *CONTROLS])
async def test_an_address_that_cannot_be_written_is_a_refused_attempt(address: str) -> None:
    attempt = await relay().push(PushRequest(address, b"text", "", {"Subject": "News"}, 1_000))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)


@given(st.text(PRINTED, max_size=8), st.sampled_from(["", "@b.example"]))
@example("", "")
@example("[", "@b.example")
@example("'_?@[_", "@b.example")
def test_no_address_is_more_than_an_attempt(beginning: str, end: str) -> None:
    endpoint = relay()
    push_request = PushRequest(beginning + end, b"text", "", {}, 1_000)
    try:
        written = endpoint._mail_bytes(push_request, 0)
    except ValueError:
        return
    assert f"To: {beginning}{end}\r\n".encode() in written
