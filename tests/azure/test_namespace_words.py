"""Texts that namespaces write and read: durations, lock tokens, schedules, dead letters."""

import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access.secret import InstallationSecret
from redrive.azure.eventgrid import event_profile, namespace_letters
from redrive.azure.eventgrid.notation import duration_ms
from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.eventgrid.settings import delivery_settings
from redrive.azure.namespaces.settling import LockTokens
from redrive.model.delivery import DeadLetterReason, Delivery, as_copy
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue
from redrive.model.topic import Subscription, Topic

WHERE = "/subscriptions/g/resourceGroups/rg/providers/Microsoft.EventGrid/namespaces/Shop/topics/Orders"
TOPIC = ResourceName("g", "rg", "namespaces:shop:orders")
NUMBERS = st.integers(0, 2**63 - 1)


def delivery(**fields: object) -> Delivery:
    body = '{"id":"1","data":12345678901234567890}'
    whole = Delivery(7, 8, 5000, 2, 9, 1000, 1000, 2000, b"m" * 16, None, None, None, None, body)
    for field, value in fields.items():
        setattr(whole, field, value)
    return whole


# ---- durations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT1M", 60),
        ("PT23H12M", 83_520),
        ("P0DT23H12M", 83_520),
        ("P1D", 86_400),
        ("P1DT0H0M0S", 86_400),
        ("P1W", 604_800),
        ("PT0.5S", 0.5),
    ],
)
def test_a_duration_is_so_long(text: str, seconds: float) -> None:
    assert duration_ms(text) == seconds * 1000


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "1D", "P1M", "P1Y", "PT1D", "P-1D", "pt1m", "P" + "1" * 99]
)
def test_malformed_durations_are_refused(text: str) -> None:
    assert duration_ms(text) is None


TOKENS = LockTokens(InstallationSecret(b"s" * 32))


# ---- lock tokens -----------------------------------------------------------------------------------------------------


@given(seq=NUMBERS, token=NUMBERS, first=NUMBERS, attempts=st.integers(1, 2**31 - 1))
def test_a_lock_token_says_what_was_written(seq: int, token: int, first: int, attempts: int) -> None:
    claimed = delivery(seq=seq, token=token, first_claimed_at=first, attempts=attempts)
    read = TOKENS.read(TOKENS.write(claimed), Queue(7, TOPIC))
    assert read is not None
    assert read[1:] == (seq, token, first, attempts)


def test_a_lock_token_is_of_one_queue() -> None:
    assert TOKENS.read(TOKENS.write(delivery()), Queue(8, TOPIC)) is None


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_other_texts_are_no_lock_tokens(text: str) -> None:
    assert TOKENS.read(text, Queue(7, TOPIC)) is None


@given(st.binary(min_size=32, max_size=64))
def test_forged_lock_tokens_are_refused(raw: bytes) -> None:
    packed = b"\x01" + (7).to_bytes(8, "big") + raw
    assert TOKENS.read(base64.urlsafe_b64encode(packed).decode(), Queue(7, TOPIC)) is None


def test_a_lock_token_tells_nothing() -> None:
    written = base64.urlsafe_b64decode(TOKENS.write(delivery(seq=0x0102030405060708, token=9)))
    assert bytes(range(1, 9)) not in written


# ---- push ----------------------------------------------------------------------------------------------------------


def subscription(**push: object) -> Subscription:
    configuration = {"deliveryMode": "Push", "push": {"maxDeliveryCount": 10, **push}}
    properties = {"deliveryConfiguration": configuration, "eventDeliverySchema": "CloudEventSchemaV1_0"}
    attributes = {
        "id": f"{WHERE}/eventSubscriptions/Billing",
        "properties": orjson.dumps(properties).decode(),
    }
    return Subscription("billing", TOPIC, 1, "g", "https", "https://x", attributes=attributes)


def topic(days: int) -> Topic:
    attributes = {"id": WHERE, "properties": orjson.dumps({"eventRetentionInDays": days}).decode()}
    return Topic(1, TOPIC, "eventgrid", attributes=attributes)


def test_attempts_come_at_the_published_moments() -> None:
    plan = event_profile.namespace_plan(topic(7), delivery_settings(subscription()))
    moments = [0]
    while (wait := plan.schedule.nominal_ms(len(moments))) is not None:  # type: ignore[attr-defined]  # a RetrySchedule
        moments.append(moments[-1] + wait // 1000)
    assert moments == [0, 10, 30, 60, 300, 600, 900, 1200, 1500, 1800]


@pytest.mark.parametrize(
    ("to_live", "days", "kept_ms"),
    [(None, 2, 2 * DAY_MS), ("PT20M", 7, 1_200_000), ("P3D", 1, DAY_MS), (None, 7, 7 * DAY_MS)],
)
def test_an_event_lives_no_longer_than_its_topic_keeps_it(
    to_live: str | None, days: int, kept_ms: int
) -> None:
    given_ = {} if to_live is None else {"eventTimeToLive": to_live}
    schedule = event_profile.namespace_plan(topic(days), delivery_settings(subscription(**given_))).schedule
    assert (schedule.expired(0, kept_ms - 1), schedule.expired(0, kept_ms)) == (False, True)


# ---- dead letters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "reason", "result"),
    [
        (
            DeadLetterReason.EXHAUSTED,
            "Maximum delivery attempts was exceeded.",
            "Event was not acknowledged nor rejected.",
        ),
        (DeadLetterReason.EXPIRED, "Time to live was exceeded.", "Event was not acknowledged nor rejected."),
        (DeadLetterReason.REJECTED, "Event was rejected.", "Event was rejected."),
    ],
)
def test_a_dead_letter_says_its_reason(how: DeadLetterReason, reason: str, result: str) -> None:
    envelope = PublishedEvent("CloudEventSchemaV1_0", WHERE, 1000).envelope()
    copy = as_copy(delivery(headers=envelope), 3, 4, 6000, 300, how)
    text = namespace_letters.text_of(copy, PublishedEvent.unpack(copy.headers).letter)
    assert '"event":{"id":"1","data":12345678901234567890}}' in text
    assert orjson.loads(text)["deadLetterProperties"] == {
        "deadletterreason": reason,
        "deliveryattempts": 2,
        "deliveryresult": result,
        "publishutc": "1970-01-01T00:00:01.0000000Z",
        "deliveryattemptutc": "1970-01-01T00:00:05.0000000Z",
    }


def test_a_dead_letters_folder_is_spelt_as_its_resources() -> None:
    assert namespace_letters.folder_of(subscription()) == "Shop/Orders/Billing"
