from dataclasses import replace

import orjson
import pytest

from redrive.access.secret import InstallationSecret
from redrive.aws.kit.messages import sequence_number
from redrive.aws.sns.notifications import notification
from redrive.aws.sns.notifications.notification import (
    Confirmation,
    Links,
    PublishedMessage,
    UnsubscribeTokens,
)

_TOPIC = "arn:aws:sns:us-east-1:123456789012:Rental-Orders"
_SUBSCRIPTION = f"{_TOPIC}:44019880-ffa0-4067-9cb4-b974443bcc2a"
_LINKS = Links(
    "https://events.example.org",
    "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem",
    UnsubscribeTokens(InstallationSecret(b"s" * 32)),
)
_PLAIN = PublishedMessage(
    id="e8c2bb09-235c-5f5d-b583-efd8df0f7d74",
    topic=_TOPIC,
    sent_at=1_570_168_435_876,
    subscription=_SUBSCRIPTION,
)
_FULL = replace(
    _PLAIN,
    version="2",
    subject='A "new" order',
    attributes={"order-status": ("String", "confirmed"), "n": ("Number", "1"), "key": ("Binary", "AAE=")},
)
_ASKED = Confirmation(
    kind=notification.SUBSCRIBE,
    id="22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
    topic=_TOPIC,
    subscription=_SUBSCRIPTION,
    token="2336412f37",
    sent_at=1_570_168_435_000,
)


def test_a_notification_to_the_letter() -> None:
    assert notification.notification(_PLAIN, "hello", _LINKS, "c2ln") == (
        '{"Type":"Notification","MessageId":"e8c2bb09-235c-5f5d-b583-efd8df0f7d74",'
        '"TopicArn":"arn:aws:sns:us-east-1:123456789012:Rental-Orders","Message":"hello",'
        '"Timestamp":"2019-10-04T05:53:55.876Z","SignatureVersion":"1","Signature":"c2ln",'
        '"SigningCertURL":"https://events.example.org/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem",'
        '"UnsubscribeURL":"https://events.example.org/?Action=Unsubscribe&SubscriptionArn='
        "arn:aws:sns:us-east-1:123456789012:Rental-Orders:44019880-ffa0-4067-9cb4-b974443bcc2a"
        f'&Token={_LINKS.tokens.token(_SUBSCRIPTION)}"}}'
    )


def test_a_notification_with_everything_has_its_keys_in_the_recorded_order() -> None:
    text = '{"order": "Grüße"}'
    document = orjson.loads(notification.notification(_FULL, text, _LINKS, "c2ln"))
    assert list(document) == [
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
        *("SigningCertURL", "UnsubscribeURL", "MessageAttributes"),
    ]
    assert document["Message"] == text
    assert document["Subject"] == 'A "new" order'
    assert document["SignatureVersion"] == "2"
    assert document["MessageAttributes"] == {
        "order-status": {"Type": "String", "Value": "confirmed"},
        "n": {"Type": "Number", "Value": "1"},
        "key": {"Type": "Binary", "Value": "AAE="},
    }


def test_a_fifo_topics_notification_has_its_place_and_no_signature() -> None:
    document = orjson.loads(notification.notification(replace(_FULL, sequence=17), "hello", _LINKS, None))
    assert list(document) == [
        *("Type", "MessageId", "SequenceNumber", "TopicArn", "Subject", "Message", "Timestamp"),
        *("UnsubscribeURL", "MessageAttributes"),
    ]
    assert document["SequenceNumber"] == sequence_number(17)


def test_a_notification_is_signed_over_its_fields_in_order() -> None:
    assert notification.signed_text(_PLAIN, "hello\nworld") == (
        "Message\nhello\nworld\n"
        "MessageId\ne8c2bb09-235c-5f5d-b583-efd8df0f7d74\n"
        "Timestamp\n2019-10-04T05:53:55.876Z\n"
        "TopicArn\narn:aws:sns:us-east-1:123456789012:Rental-Orders\n"
        "Type\nNotification\n"
    )
    assert '\nSubject\nA "new" order\nTimestamp\n' in notification.signed_text(_FULL, "hello")


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (1_570_168_435_876, "2019-10-04T05:53:55.876Z"),
        (1_570_168_435_000, "2019-10-04T05:53:55.000Z"),
        (1_570_168_435_007, "2019-10-04T05:53:55.007Z"),
        (0, "1970-01-01T00:00:00.000Z"),
    ],
)
def test_a_timestamp_has_its_milliseconds(at: int, text: str) -> None:
    assert notification.timestamp(at) == text


_EVERY_REQUEST = {
    "User-Agent": "Amazon Simple Notification Service Agent",
    "Accept-Encoding": "gzip,deflate",
    "Connection": "Keep-Alive",
}


def test_the_headers_of_a_notification() -> None:
    expected = {
        "x-amz-sns-message-type": "Notification",
        "x-amz-sns-message-id": "e8c2bb09-235c-5f5d-b583-efd8df0f7d74",
        "x-amz-sns-topic-arn": _TOPIC,
        "x-amz-sns-subscription-arn": _SUBSCRIPTION,
        **_EVERY_REQUEST,
    }
    assert notification.notification_headers(_PLAIN) == expected
    raw = notification.notification_headers(replace(_PLAIN, raw=True))
    assert raw == expected | {"x-amz-sns-rawdelivery": "true"}


def test_the_headers_of_confirmations() -> None:
    expected = {
        "x-amz-sns-message-type": "SubscriptionConfirmation",
        "x-amz-sns-message-id": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "x-amz-sns-topic-arn": _TOPIC,
        **_EVERY_REQUEST,
    }
    assert notification.confirmation_headers(_ASKED) == expected
    ended = notification.confirmation_headers(replace(_ASKED, kind=notification.UNSUBSCRIBE))
    assert ended == expected | {
        "x-amz-sns-message-type": "UnsubscribeConfirmation",
        "x-amz-sns-subscription-arn": _SUBSCRIPTION,
    }


def test_a_subscription_confirmation_to_the_letter() -> None:
    assert notification.confirmation_text(_ASKED, _LINKS, "c2ln") == (
        '{"Type":"SubscriptionConfirmation","MessageId":"22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",'
        '"Token":"2336412f37","TopicArn":"arn:aws:sns:us-east-1:123456789012:Rental-Orders",'
        '"Message":"You have chosen to subscribe to the topic arn:aws:sns:us-east-1:123456789012:Rental-Orders.\\n'
        'To confirm the subscription, visit the SubscribeURL included in this message.",'
        '"SubscribeURL":"https://events.example.org/?Action=ConfirmSubscription&TopicArn='
        'arn:aws:sns:us-east-1:123456789012:Rental-Orders&Token=2336412f37",'
        '"Timestamp":"2019-10-04T05:53:55.000Z","SignatureVersion":"1","Signature":"c2ln",'
        '"SigningCertURL":"https://events.example.org/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"}'
    )


def test_an_unsubscribe_confirmation_says_what_ends() -> None:
    ended = replace(_ASKED, kind=notification.UNSUBSCRIBE)
    document = orjson.loads(notification.confirmation_text(ended, _LINKS, "c2ln"))
    assert document["Type"] == "UnsubscribeConfirmation"
    assert document["Message"] == (
        f"You have chosen to deactivate subscription {_SUBSCRIPTION}.\n"
        "To cancel this operation and restore the subscription, visit the SubscribeURL included in this message."
    )


def test_a_confirmation_is_signed_over_its_fields_in_order() -> None:
    assert notification.signed_question(_ASKED, _LINKS) == (
        "Message\n"
        "You have chosen to subscribe to the topic arn:aws:sns:us-east-1:123456789012:Rental-Orders.\n"
        "To confirm the subscription, visit the SubscribeURL included in this message.\n"
        "MessageId\n22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324\n"
        "SubscribeURL\nhttps://events.example.org/?Action=ConfirmSubscription&TopicArn="
        "arn:aws:sns:us-east-1:123456789012:Rental-Orders&Token=2336412f37\n"
        "Timestamp\n2019-10-04T05:53:55.000Z\n"
        "Token\n2336412f37\n"
        "TopicArn\narn:aws:sns:us-east-1:123456789012:Rental-Orders\n"
        "Type\nSubscriptionConfirmation\n"
    )


def test_a_host_is_told_without_its_port() -> None:
    assert Links("http://127.0.0.1:4566", "/x.pem", _LINKS.tokens).host == "127.0.0.1"
