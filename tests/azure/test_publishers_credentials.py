"""Credentials of publishers: keys, what is signed with them, and bearers; the SDK's own tokens and recorded ones."""

import base64
import datetime as dt
import hashlib
import hmac
from typing import Any
from urllib.parse import quote

import pytest
from azure.eventgrid import generate_sas

from redrive.access.refusals import Refusals
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.credentials import PublisherCredentials, SasToken, TokenPlace
from redrive.azure.eventgrid.measures import FailureLog, Measures
from redrive.azure.eventgrid.publishing import Publishers
from redrive.azure.eventgrid.refusals import Unacceptable
from redrive.azure.wire.answers import unauthorized
from redrive.azure.wire.bearer import BearerCaller
from redrive.model.http import Request
from redrive.model.topic import Topic
from tests.azure.stage import TOPIC, Stage
from tests.azure.test_event_publishing import Nowhere

HOST = "127.0.0.1:4566"
PATH = names.publishing_path(TOPIC)
URL = f"http://{HOST}{PATH}"
KEY1, KEY2, OTHER = (base64.b64encode(letter * 32).decode() for letter in (b"a", b"b", b"c"))
END = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


class Bearers:
    """Accepts `Bearer 000000000000`."""

    async def caller(self, request: Request) -> BearerCaller:
        token = request.headers["authorization"].partition(" ")[2]
        if not token.isdigit():
            raise unauthorized("Authentication failed. The access token is invalid.")
        return BearerCaller(token)

    async def accepts(self, request: Request, client: str, secret: str) -> bool:
        return False


@pytest.fixture
def credentials(stage: Stage) -> PublisherCredentials:
    return PublisherCredentials(Bearers(), stage.clock, required=True)


async def topic_with_keys(stage: Stage, **properties: Any) -> Topic:
    from dataclasses import replace

    topic = await stage.topic(**properties)
    return replace(topic, attributes={**topic.attributes, "key1": KEY1, "key2": KEY2})


def request(query: str = "api-version=2018-01-01", **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request("POST", PATH, query, {"host": HOST, **named}, b"[]")


async def admit(stage: Stage, credentials: PublisherCredentials, asked: Request, topic: Topic | None) -> None:
    """Let a request pass to a topic, or to one of that name that does not exist."""
    publishers = Publishers(
        stage.engine, credentials, Measures(lambda *_: None, FailureLog(Nowhere(), "", ""))
    )
    name = names.topic_name(TOPIC) if topic is None else topic.name
    await publishers._admit(asked, name, topic)


async def refusal(
    stage: Stage, credentials: PublisherCredentials, asked: Request, topic: Topic | None
) -> Unacceptable:
    with pytest.raises(Unacceptable) as raised:
        await admit(stage, credentials, asked, topic)
    return raised.value


def signed(resource: str, end: str, key: str = KEY1, *, safe: str = "") -> str:
    text = f"r={quote(resource, safe=safe)}&e={quote(end, safe=safe)}"
    mac = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return f"{text}&s={quote(base64.b64encode(mac).decode(), safe='')}"


@pytest.mark.parametrize(
    "asked",
    [
        request(aeg_sas_key=KEY1),
        request(aeg_sas_key=KEY2),
        request(f"api-version=2018-01-01&aeg-sas-key={quote(KEY2)}"),
        request(f"AEG-SAS-KEY={quote(KEY1, safe='')}"),
        request(aeg_sas_token=signed(URL, "2030-01-01T00:00:00Z")),
        request(aeg_sas_token=signed(URL, "2030-01-01T00:00:00Z", KEY2)),
        request(authorization=f"SharedAccessSignature {signed(URL, '2030-01-01T00:00:00Z')}"),
        request(aeg_sas_token=generate_sas(URL, KEY1, END)),
        request(authorization="Bearer 000000000000"),
    ],
)
async def test_a_key_a_signature_or_a_bearer_token_is_accepted(
    stage: Stage, credentials: PublisherCredentials, asked: Request
) -> None:
    await admit(stage, credentials, asked, await topic_with_keys(stage))


NOT_ONE = "Request must contain one of the following authorization signature: aeg-sas-token, aeg-sas-key."
NOT_FOR = f"The request authorization key is not authorized for {HOST}. This is due to the reason: "


@pytest.mark.parametrize(
    ("asked", "status", "message"),
    [
        (request(), 401, NOT_ONE),
        (request(authorization="Basic eDp5"), 401, NOT_ONE),
        (request(aeg_sas_key=""), 400, "The request's authorization key is empty."),
        (request(aeg_sas_key=OTHER), 401, NOT_FOR + "The key is not one of this resource's."),
        (request(aeg_sas_token="x"), 401, NOT_FOR + "The token does not have the form r=…&e=…&s=…."),
        (request(aeg_sas_token="r=a&e=b&s=!"), 401, NOT_FOR + "The signature is not Base64."),
        (
            request(aeg_sas_token=signed(URL, "soon")),
            401,
            NOT_FOR + "The token's expiry is not a time: soon.",
        ),
        (
            request(aeg_sas_token=signed(URL, "2030-01-01T00:00:00Z", OTHER)),
            401,
            NOT_FOR + "The signature is not one of this resource's keys.",
        ),
        (
            request(aeg_sas_token=signed(URL, "2025-12-31T23:59:59Z")),
            401,
            NOT_FOR + "The token has expired.",
        ),
        (
            request(aeg_sas_token=signed(URL.replace("Orders", "Order"), "2030-01-01T00:00:00Z")),
            401,
            NOT_FOR + "The token is for another resource.",
        ),
        (request(authorization="Bearer x"), 401, "Authentication failed. The access token is invalid."),
        (
            request(authorization="Bearer 123456789012"),
            401,
            NOT_FOR + "The bearer does not manage the Azure subscription.",
        ),
    ],
)
async def test_other_credentials_are_refused(
    stage: Stage, credentials: PublisherCredentials, asked: Request, status: int, message: str
) -> None:
    error = await refusal(stage, credentials, asked, await topic_with_keys(stage))
    assert (error.status, error.message) == (status, message)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (request(), "CredentialMissing"),
        (request(aeg_sas_key=OTHER), "AccessKeyInvalid"),
        (request(aeg_sas_token="x"), "SharedAccessSignatureInvalid"),
        (request(authorization="Bearer 123456789012"), "SubscriptionOfAnotherAccount"),
    ],
)
async def test_refused_publishers_are_counted_and_logged(
    stage: Stage, asked: Request, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    refusals = Refusals(stage.clock)
    guarding = PublisherCredentials(Bearers(), stage.clock, required=True, refusals=refusals)
    topic = await topic_with_keys(stage)
    await admit(stage, guarding, request(aeg_sas_key=KEY1), topic)
    await refusal(stage, guarding, asked, topic)
    assert refusals.totals == {reason: 1}
    (line,) = caplog.messages
    assert f"reason={reason} " in line
    assert OTHER not in line


@pytest.mark.parametrize(
    "asked",
    [
        request(aeg_sas_token="r=" + "%41" * 20_000 + "&e=2030-01-01T00:00:00Z&s=AAAA"),
        request(aeg_sas_token=signed(URL, "9" * 3000)),
        request(aeg_sas_key="x" * 60_000),
        request("a=%41&" * 2_000 + f"aeg-sas-key={quote(KEY1)}"),
        request("a=b&" * 100 + f"aeg-sas-key={quote(KEY1)}"),
    ],
    ids=["token", "moment", "key", "query", "fields"],
)
async def test_long_credentials_are_cut_before_they_are_read(
    stage: Stage, credentials: PublisherCredentials, asked: Request
) -> None:
    error = await refusal(stage, credentials, asked, await topic_with_keys(stage))
    assert error.status == 401
    assert len(error.message) < 300


async def test_a_topic_without_local_authentication_takes_bearers_alone(
    stage: Stage, credentials: PublisherCredentials
) -> None:
    topic = await topic_with_keys(stage, disableLocalAuth=True)
    for asked in (
        request(aeg_sas_key=KEY1),
        request(aeg_sas_token=signed(URL, "2030-01-01T00:00:00Z")),
    ):
        error = await refusal(stage, credentials, asked, topic)
        assert error.message == NOT_FOR + "Local authentication is disabled for this resource."
    await admit(stage, credentials, request(authorization="Bearer 000000000000"), topic)


async def test_without_authentication_any_key_opens_a_topic(stage: Stage) -> None:
    open_to_all = PublisherCredentials(Bearers(), stage.clock, required=False)
    await admit(stage, open_to_all, request(aeg_sas_key=OTHER), await topic_with_keys(stage))


MOMENT = int(END.timestamp() * 1000)


@pytest.mark.parametrize(
    ("end", "expires_at"),
    [
        ("2030-01-01T00:00:00", MOMENT),
        ("2030-01-01T00:00:00Z", MOMENT),
        ("2030-01-01T00:00:00.250000+00:00", MOMENT + 250),
        ("2030-01-01T01:00:00+01:00", MOMENT),
        ("2030-01-01 00:00:00", MOMENT),
        ("2030-01-01 00:00:00.250000+00:00", MOMENT + 250),
        ("1/1/2030 12:00:00 AM", MOMENT),
        ("01/01/2030 12:00:00 AM", MOMENT),
        ("1/1/2030 12:00:00\u202fAM", MOMENT),
        ("1/1/2030 12:00:00 AM +00:00", MOMENT),
        ("12/31/2029 11:59:59 PM", MOMENT - 1000),
    ],
)
@pytest.mark.parametrize("safe", ["", ":/"])
def test_the_end_of_a_token_is_read_as_each_client_writes_it(end: str, expires_at: int, safe: str) -> None:
    token = SasToken.parse(signed(URL, end, safe=safe))
    assert token.expires_at == expires_at
    assert token.resource == URL
    assert token.is_signed_with([OTHER, KEY1])


def test_the_text_is_signed_as_it_came() -> None:
    """A token made by the SDK for another server, kept here."""
    token = SasToken.parse(
        "r=http%3A%2F%2F127.0.0.1%3A8911%2Fapi%2Fevents%3FapiVersion%3D2018-01-01&e=2030-01-01%2000%3A00%3A00"
        "&s=3OeE4Zy22TBbflls0ubMS06FCRZgcvphH0gCjYQyEFI%3D"
    )
    assert token.is_signed_with(["a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="])
    assert token.expires_at == MOMENT
    assert token.is_for(TokenPlace("/api/events", hosts=("127.0.0.1:8911",)))
    assert not token.is_for(TokenPlace("/api/events", hosts=("127.0.0.1:8912",)))


PLACES = (
    TokenPlace(PATH, hosts=(HOST, "Redrive.Example:443")),
    TokenPlace("/api/events", label="Orders"),
    TokenPlace(TOPIC.text),
)


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (URL, True),
        (f"{URL}?apiVersion=2018-01-01", True),
        (f"{URL.upper()}/", True),
        (URL.replace("http:", "https:"), True),
        (f"https://redrive.example{PATH}", True),
        (URL.removesuffix("/api/events"), True),
        (f"http://{HOST}", True),
        ("https://orders.westus2-1.eventgrid.azure.net/api/events", True),
        ("https://orders.westus2-1.eventgrid.azure.net", True),
        (TOPIC.text, True),
        (f"/subscriptions/{TOPIC.subscription}", True),
        (URL.removesuffix("s"), False),
        (f"{URL}/more", False),
        (f"https://elsewhere.example{PATH}", False),
        ("https://elsewhere.example", False),
        (f"http://{HOST}.elsewhere.example{PATH}", False),
        ("https://bills.westus2-1.eventgrid.azure.net/api/events", False),
        ("https://orders.elsewhere.example/api/events", False),
        (f"https://elsewhere.example{TOPIC.text}", False),
        (PATH, False),
        ("", False),
        ("/", False),
        ("//", False),
        ("?", False),
        ("http://[", False),
    ],
)
def test_a_token_is_for_a_resource_by_each_of_its_names(resource: str, expected: bool) -> None:
    token = SasToken.parse(signed(resource, "2030-01-01T00:00:00Z"))
    assert token.is_for(*PLACES) is expected


@pytest.mark.parametrize(
    "asked",
    [
        request(),
        request(authorization="Basic eDp5"),
        request(aeg_sas_key=""),
        request(aeg_sas_key=OTHER),
        request(aeg_sas_token="x"),
        request(aeg_sas_token=signed(URL, "2030-01-01T00:00:00Z", OTHER)),
        request(authorization="Bearer x"),
        request(authorization="Bearer 123456789012"),
    ],
)
async def test_a_topic_that_does_not_exist_refuses_as_one_that_does(
    stage: Stage, credentials: PublisherCredentials, asked: Request
) -> None:
    standing = await refusal(stage, credentials, asked, await topic_with_keys(stage))
    absent = await refusal(stage, credentials, asked, None)
    assert (absent.status, absent.rule, absent.message) == (standing.status, standing.rule, standing.message)
