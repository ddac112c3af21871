import orjson
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.sns.notifications.notification import (
    Confirmation,
    PublishedMessage,
    address,
    is_confirmation,
)

_TOPIC = "arn:aws:sns:eu-central-1:000000000000:rentals"
_SUBSCRIPTION = f"{_TOPIC}:44019880-ffa0-4067-9cb4-b974443bcc2a"

_texts = st.text(st.characters(codec="utf-8"))
_published = st.builds(
    PublishedMessage,
    id=_texts,
    topic=_texts,
    sent_at=st.integers(0, 2**53),
    version=st.sampled_from(["1", "2"]),
    subject=st.none() | _texts,
    attributes=st.dictionaries(_texts, st.tuples(_texts, _texts), max_size=5),
    trace=st.none() | _texts,
)


@given(_published)
def test_an_envelope_is_read_as_it_was_written(published: PublishedMessage) -> None:
    assert PublishedMessage.unpack(published.envelope()) == published


@given(_published, _texts, st.booleans(), st.none() | st.integers(0, 2**62))
def test_a_deliverys_headers_are_the_envelope_and_its_own(
    published: PublishedMessage, subscription: str, raw: bool, sequence: int | None
) -> None:
    headers = address(published.envelope(), subscription, raw=raw)
    if sequence is not None:
        headers = b'{"sequence":%d,%b' % (sequence, headers[1:])  # as the store does it
    read = PublishedMessage.unpack(headers)
    assert (read.subscription, read.raw, read.sequence) == (subscription, raw, sequence)
    assert read.envelope() == published.envelope()


def test_the_format_is_the_one_that_others_know() -> None:
    published = PublishedMessage(
        id="e8c2bb09-235c-5f5d-b583-efd8df0f7d74",
        topic=_TOPIC,
        sent_at=1_570_168_435_876,
        version="2",
        subject="An order",
        attributes={"order-status": ("String", "confirmed"), "key": ("Binary", "AAE=")},
        trace="Root=1-67891233-abcdef012345678912345678",
    )
    assert orjson.loads(address(published.envelope(), _SUBSCRIPTION, raw=True)) == {
        "envelope": "sns",
        "id": "e8c2bb09-235c-5f5d-b583-efd8df0f7d74",
        "topic": _TOPIC,
        "sent_at": 1_570_168_435_876,
        "version": "2",
        "subject": "An order",
        "attributes": {"order-status": ["String", "confirmed"], "key": ["Binary", "AAE="]},
        "trace": "Root=1-67891233-abcdef012345678912345678",
        "subscription": _SUBSCRIPTION,
        "raw": True,
    }


def test_members_left_out_are_not_kept() -> None:
    kept = orjson.loads(PublishedMessage("an id", _TOPIC, 1).envelope())
    assert kept.keys() == {"envelope", "id", "topic", "sent_at", "version"}


def test_a_confirmation_is_told_from_a_message() -> None:
    confirmation = Confirmation("SubscriptionConfirmation", "an id", _TOPIC, _SUBSCRIPTION, "a token", 1, "2")
    assert Confirmation.unpack(confirmation.pack()) == confirmation
    assert is_confirmation(confirmation.pack())
    assert not is_confirmation(
        address(PublishedMessage("an id", _TOPIC, 1).envelope(), _SUBSCRIPTION, raw=False)
    )
