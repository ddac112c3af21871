import asyncio
import random
from dataclasses import replace
from typing import Any

import orjson
import pytest
from cryptography.exceptions import InvalidSignature

from redrive.access.signing_pair import SigningPair, make_pair
from redrive.aws.kit.messages import sequence_number
from redrive.aws.sns.notifications import notification
from redrive.aws.sns.notifications.notification import Confirmation, Links, PublishedMessage, address
from redrive.aws.sns.notifications.notification_renderer import NotificationRenderer, Signer, certificate_path
from redrive.aws.sns.sms.text_messages import TextMessages
from redrive.aws.sqs import message as sqs_message
from redrive.endpoints.http import HttpEndpoint
from redrive.engine.configuration.directory import Directory
from redrive.engine.ports import PushRequest
from redrive.model.delivery import Delivery
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription
from redrive.server.http import HttpFront
from redrive.server.limits import HttpLimits
from redrive.stores.sqlite.store import SqliteStore
from tests.aws.sns import subscriber
from tests.aws.sns.parts import TOKENS

_NOW = 1_767_225_600_000
_TOPIC = ResourceName("123456789012", "us-east-1", "Rental-Orders")
_TOPIC_ARN = "arn:aws:sns:us-east-1:123456789012:Rental-Orders"
_ID = "44019880-ffa0-4067-9cb4-b974443bcc2a"
_ARN = f"{_TOPIC_ARN}:{_ID}"
_ATTRIBUTES = {"status": ("String", "confirmed"), "n": ("Number", "1.5"), "key": ("Binary", "AAE=")}
_PUBLISHED = PublishedMessage(
    id="e8c2bb09-235c-5f5d-b583-efd8df0f7d74",
    topic=_TOPIC_ARN,
    sent_at=_NOW,
    subject="An order",
    attributes=_ATTRIBUTES,
)
_BARE = PublishedMessage(id=_PUBLISHED.id, topic=_TOPIC_ARN, sent_at=_NOW)
_ASKED = Confirmation(
    notification.SUBSCRIBE, "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", _TOPIC_ARN, _ARN, "t0ken", _NOW
)


_TEXTS = TextMessages(Directory(SqliteStore(None), int))


@pytest.fixture(scope="module")
def pair() -> SigningPair:
    return make_pair(_NOW)


@pytest.fixture
def renderer(pair: SigningPair) -> NotificationRenderer:
    return NotificationRenderer(
        Links("https://events.example.org", certificate_path(pair), TOKENS),
        Signer(pair),
        {"sms": _TEXTS.render},
    )


def _subscription(protocol: str, endpoint: str = "https://example.org/hook") -> Subscription:
    return Subscription(_ID, _TOPIC, 7, "123456789012", protocol, endpoint)


def _delivery(headers: bytes, text: str = "hello") -> Delivery:
    return Delivery(7, 1, _NOW, 1, 5, _NOW, _NOW, _NOW, b"i" * 16, None, None, None, headers, text)


def _message(
    published: PublishedMessage = _PUBLISHED, *, raw: bool = False, sequence: int | None = None
) -> Delivery:
    headers = address(published.envelope(), _ARN, raw=raw)
    return _delivery(headers if sequence is None else b'{"sequence":%d,%b' % (sequence, headers[1:]))


async def _rendered(
    renderer: NotificationRenderer, protocol: str, delivery: Delivery, **other: str
) -> PushRequest:
    settings = {"content_type": notification.CONTENT_TYPE, "display_name": ""} | other
    return await renderer.push_request(_subscription(protocol), delivery, **settings)


# ---- webhooks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1", "2"])
async def test_a_webhook_gets_a_notification_that_it_can_check(
    renderer: NotificationRenderer, pair: SigningPair, version: str
) -> None:
    push_request = await _rendered(renderer, "https", _message(replace(_PUBLISHED, version=version)))
    received = orjson.loads(push_request.body)
    subscriber.check(received, pair.pem)
    assert received["SignatureVersion"] == version
    assert received["SigningCertURL"] == f"https://events.example.org{certificate_path(pair)}"
    assert push_request.headers["x-amz-sns-message-type"] == "Notification"
    assert push_request.timeout_ms == 15_000


async def test_a_prepared_notification_is_rendered_at_once(renderer: NotificationRenderer) -> None:
    subscription, content_type = _subscription("https"), notification.CONTENT_TYPE
    signed, raw, ordered = _message(), _message(raw=True), _message(sequence=1)
    confirmation = _delivery(_ASKED.pack())
    assert renderer.notification_at_once(subscription, signed, content_type) is None
    deliveries = [signed, confirmation, raw, signed, ordered]
    one, none, *others = await renderer.notifications(subscription, deliveries, content_type)
    assert none is None
    for push_request, delivery in zip((one, *others), (signed, raw, signed, ordered), strict=True):
        assert push_request == await _rendered(renderer, "https", delivery)
    assert renderer.notification_at_once(subscription, confirmation, content_type) is None
    assert renderer.notification_at_once(subscription, ordered, content_type) == others[2]


@pytest.mark.parametrize("name", ["Message", "MessageId", "Subject", "Timestamp", "TopicArn"])
async def test_a_changed_notification_fails_the_signature_check(
    renderer: NotificationRenderer, pair: SigningPair, name: str
) -> None:
    received = orjson.loads((await _rendered(renderer, "http", _message())).body)
    with pytest.raises(InvalidSignature):
        subscriber.check(received | {name: received[name] + "!"}, pair.pem)


async def test_another_certificates_signature_fails_the_check(renderer: NotificationRenderer) -> None:
    received = orjson.loads((await _rendered(renderer, "http", _message())).body)
    with pytest.raises(InvalidSignature):
        subscriber.check(received, make_pair(_NOW).pem)


async def test_a_text_for_one_protocol_has_its_own_signature(
    renderer: NotificationRenderer, pair: SigningPair
) -> None:
    for text in ("for everybody", "for webhooks"):
        delivery = replace(_message(), body=text)
        received = orjson.loads((await _rendered(renderer, "http", delivery)).body)
        assert received["Message"] == text
        subscriber.check(received, pair.pem)


async def test_the_delivery_policy_has_its_say_in_the_content_type(renderer: NotificationRenderer) -> None:
    push_request = await _rendered(renderer, "http", _message(), content_type="application/json")
    assert push_request.content_type == "application/json"


async def test_raw_is_the_text_alone(renderer: NotificationRenderer) -> None:
    push_request = await _rendered(renderer, "http", _message(raw=True), content_type="text/csv")
    assert push_request.body == b"hello"
    assert push_request.content_type == "text/csv"
    assert push_request.headers["x-amz-sns-rawdelivery"] == "true"


@pytest.mark.parametrize("kind", [notification.SUBSCRIBE, notification.UNSUBSCRIBE])
async def test_a_confirmation_can_be_checked_and_is_plain_text_whatever_the_policy_says(
    renderer: NotificationRenderer, pair: SigningPair, kind: str
) -> None:
    delivery = _delivery(replace(_ASKED, kind=kind, version="2").pack(), "")
    push_request = await _rendered(renderer, "https", delivery, content_type="application/json")
    received = orjson.loads(push_request.body)
    subscriber.check(received, pair.pem)
    assert received["Type"] == kind
    assert push_request.content_type == "text/plain; charset=UTF-8"
    with pytest.raises(InvalidSignature):
        subscriber.check(received | {"SubscribeURL": "https://evil.example/"}, pair.pem)


async def test_over_the_wire(pair: SigningPair) -> None:
    """A webhook gets a notification, fetches the certificate that it names, and is convinced."""
    got: list[Request] = []

    def answer(request: Request) -> Response:
        pem = pair.pem if request.path == certificate_path(pair) else None
        if pem is not None:
            return Response(200, pem, "application/x-pem-file")
        got.append(request)
        return Response(200, b"thanks", "text/plain")

    front = HttpFront(answer, HttpLimits(), now=lambda: _NOW, new_request_id=lambda: "")
    await front.start("127.0.0.1", 0)
    base = f"http://127.0.0.1:{front.port}"
    endpoint = HttpEndpoint(lambda: _NOW, random.Random(1))
    rendering = NotificationRenderer(
        Links(base, certificate_path(pair), TOKENS), Signer(pair), {"sms": _TEXTS.render}
    )
    delivery = replace(_message(), body="Grüße\n🚗")
    push_request = await rendering.push_request(
        _subscription("http", f"{base}/hook"), delivery, content_type="text/plain", display_name=""
    )
    assert (await endpoint.push(push_request)).delivered
    received = orjson.loads(got[0].body)
    subscriber.check(received, await asyncio.to_thread(subscriber.fetch, received["SigningCertURL"]))
    assert got[0].headers["user-agent"] == "Amazon Simple Notification Service Agent"
    assert got[0].headers["accept-encoding"] == "gzip,deflate"
    await endpoint.close()
    await front.drain(1)


# ---- queues ------------------------------------------------------------------------------------------------------


def test_a_queue_gets_the_notification_as_its_body(renderer: NotificationRenderer, pair: SigningPair) -> None:
    body, attributes = renderer.present(_message())
    received = orjson.loads(body)
    subscriber.check(received, pair.pem)
    assert received["Message"] == "hello"
    assert received["MessageAttributes"]["n"] == {"Type": "Number", "Value": "1.5"}
    assert attributes == {}


async def test_a_queue_and_a_webhook_get_the_same(renderer: NotificationRenderer) -> None:
    body, _ = renderer.present(_message())
    assert (await _rendered(renderer, "http", _message())).body == body.encode()


def test_a_queue_gets_raw_what_was_published_with_its_attributes(renderer: NotificationRenderer) -> None:
    assert renderer.present(_message(raw=True)) == (
        "hello",
        {
            "status": {"DataType": "String", "StringValue": "confirmed"},
            "n": {"DataType": "Number", "StringValue": "1.5"},
            "key": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
        },
    )


def test_raw_attributes_are_what_sqs_reads_from_the_same_headers(renderer: NotificationRenderer) -> None:
    """The two services know nothing of each other but the names `attributes` and `trace`."""
    delivery = _message(replace(_PUBLISHED, trace="Root=1-2-3"), raw=True)
    read: dict[str, Any] = sqs_message.unpack(delivery.headers)
    assert read["attributes"] == renderer.present(delivery)[1]
    assert read["trace"] == "Root=1-2-3"


def test_a_fifo_queue_gets_a_place_and_no_signature(renderer: NotificationRenderer) -> None:
    received = orjson.loads(renderer.present(_message(sequence=3))[0])
    assert received["SequenceNumber"] == sequence_number(3)
    assert not received.keys() & {"SignatureVersion", "Signature", "SigningCertURL"}


def test_a_queue_of_another_account_is_asked_first(renderer: NotificationRenderer, pair: SigningPair) -> None:
    body, attributes = renderer.present(_delivery(_ASKED.pack(), ""))
    received = orjson.loads(body)
    subscriber.check(received, pair.pem)
    assert (received["Type"], received["Token"], attributes) == ("SubscriptionConfirmation", "t0ken", {})


# ---- functions and streams ---------------------------------------------------------------------------------------


async def test_a_function_gets_an_event(renderer: NotificationRenderer, pair: SigningPair) -> None:
    event = orjson.loads((await _rendered(renderer, "lambda", _message())).body)
    (record,) = event["Records"]
    assert list(record) == ["EventSource", "EventVersion", "EventSubscriptionArn", "Sns"]
    assert record["EventSource"] == "aws:sns"
    assert record["EventSubscriptionArn"] == _ARN
    sns = record["Sns"]
    assert list(sns) == [
        *(
            "Type",
            "MessageId",
            "TopicArn",
            "Subject",
            "Message",
            "Timestamp",
            "SignatureVersion",
            "Signature",
        ),
        *("SigningCertUrl", "UnsubscribeUrl", "MessageAttributes"),
    ]
    assert sns["MessageAttributes"] == {
        "status": {"Type": "String", "Value": "confirmed"},
        "n": {"Type": "String", "Value": "1.5"},
        "key": {"Type": "Binary", "Value": "AAE="},
    }
    subscriber.check(sns, pair.pem)


async def test_a_functions_event_has_every_key(renderer: NotificationRenderer, pair: SigningPair) -> None:
    event = orjson.loads((await _rendered(renderer, "lambda", _message(replace(_BARE, version="2")))).body)
    sns = event["Records"][0]["Sns"]
    assert (sns["Subject"], sns["MessageAttributes"], sns["SignatureVersion"]) == (None, {}, "1")
    subscriber.check(sns | {"SignatureVersion": "2"}, pair.pem)


async def test_a_stream_gets_lines_without_signatures(renderer: NotificationRenderer) -> None:
    body = (await _rendered(renderer, "firehose", _message())).body
    assert body.endswith(b"}\n")
    assert body.count(b"\n") == 1
    assert list(orjson.loads(body)) == [
        *("Type", "MessageId", "TopicArn", "Subject", "Message", "Timestamp", "UnsubscribeURL"),
        "MessageAttributes",
    ]
    assert "Subject" not in orjson.loads((await _rendered(renderer, "firehose", _message(_BARE))).body)


async def test_a_stream_gets_raw_the_text(renderer: NotificationRenderer) -> None:
    assert (await _rendered(renderer, "firehose", _message(raw=True))).body == b"hello"


async def test_a_device_gets_the_text(renderer: NotificationRenderer) -> None:
    assert (await _rendered(renderer, "application", _message())).body == b"hello"


# ---- mail --------------------------------------------------------------------------------------------------------


async def test_a_mail_has_the_text_and_the_way_out(renderer: NotificationRenderer) -> None:
    push_request = await _rendered(renderer, "email", _message(), display_name="Rentals")
    text = push_request.body.decode()
    assert text.startswith("hello\n\n")
    assert (
        f"https://events.example.org/?Action=Unsubscribe&SubscriptionArn={_ARN}&Token={TOKENS.token(_ARN)}\n"
        in text
    )
    assert push_request.headers == {
        "Subject": "An order",
        "From": "Rentals",
        "Message-ID": f"<{_PUBLISHED.id}.{_ID}@events.example.org>",
    }


async def test_a_mail_without_a_subject_has_the_usual_one(renderer: NotificationRenderer) -> None:
    assert (await _rendered(renderer, "email", _message(_BARE))).headers[
        "Subject"
    ] == "AWS Notification Message"


async def test_a_mail_for_programs_is_the_notification(
    renderer: NotificationRenderer, pair: SigningPair
) -> None:
    push_request = await _rendered(renderer, "email-json", _message())
    subscriber.check(orjson.loads(push_request.body), pair.pem)


async def test_a_mail_asks_with_a_link(renderer: NotificationRenderer) -> None:
    push_request = await _rendered(renderer, "email", _delivery(_ASKED.pack(), ""))
    link = f"https://events.example.org/?Action=ConfirmSubscription&TopicArn={_TOPIC_ARN}&Token=t0ken\n"
    assert link in push_request.body.decode()
    assert push_request.headers["Subject"] == "AWS Notification - Subscription Confirmation"
    ended = await _rendered(
        renderer, "email", _delivery(replace(_ASKED, kind=notification.UNSUBSCRIBE).pack())
    )
    assert _ARN in ended.body.decode()


async def test_a_mail_for_programs_asks_in_json(renderer: NotificationRenderer, pair: SigningPair) -> None:
    push_request = await _rendered(renderer, "email-json", _delivery(_ASKED.pack(), ""))
    subscriber.check(orjson.loads(push_request.body), pair.pem)
