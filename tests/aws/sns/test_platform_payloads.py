"""Payloads for devices, held to the examples of the developer guide."""

import contextlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.sns.devices import payloads
from redrive.aws.sns.devices.payloads import DeviceMessage, Notification, Unsendable
from redrive.model.attempt import Reason

SENT_AT = 1_767_225_600_000
FOUR_WEEKS = 28 * 86_400
BUNDLE = "com.example.rentals"


_NAMES = st.sampled_from(
    [
        "aps",
        "data",
        "notification",
        "fcmV1Message",
        "message",
        "android",
        "badge",
        "title",
        "time_to_live",
        "x",
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**63) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=8,
)


def device_message(
    text: Any, platform: str, after_ms: int = 0, *, own: bool = True, **attributes: str
) -> DeviceMessage:
    """A message; attributes by what follows the platform's prefix, `APNS__TTL` for `AWS.SNS.MOBILE.APNS.TTL`."""
    given = {f"AWS.SNS.MOBILE.{name.replace('__', '.')}": value for name, value in attributes.items()}
    written = text if isinstance(text, str) else orjson.dumps(text).decode()
    return DeviceMessage(platform, written, own, given, SENT_AT, SENT_AT + after_ms)


def nested(levels: int) -> str:
    return f'{{"data":{"[" * levels}{"]" * levels}}}'


def apple(text: Any, platform: str = "APNS", after_ms: int = 0, **attributes: str) -> Notification:
    return payloads.for_apple(device_message(text, platform, after_ms, **attributes), BUNDLE)


def google(text: Any, after_ms: int = 0, *, own: bool = True, **attributes: str) -> Any:
    made = device_message(text, "GCM", after_ms, own=own, **attributes)
    return orjson.loads(payloads.for_google(made, "the token").body)


def amazon(text: Any, after_ms: int = 0, *, own: bool = True, **attributes: str) -> Any:
    return orjson.loads(
        payloads.for_amazon(device_message(text, "ADM", after_ms, own=own, **attributes)).body
    )


class TestText:
    def test_plain_text_is_wrapped(self) -> None:
        plain = payloads.for_apple(device_message("hello", "APNS", own=False), BUNDLE)
        assert orjson.loads(plain.body) == {"aps": {"alert": "hello"}}
        assert google("hello", own=False)["message"] == {
            "token": "the token",
            "data": {"default": "hello"},
            "android": {"data": {"default": "hello"}},
            "webpush": {"data": {"default": "hello"}},
        }
        assert amazon("hello", own=False) == {"data": {"default": "hello"}}

    def test_a_text_of_its_own_is_not_touched(self) -> None:
        text = '{ "aps": {"alert": "1.0e3"}, "n": 1.0e3 }'
        assert apple(text).body.decode() == text

    @pytest.mark.parametrize("text", ["hello", "[1]", '"hello"', "{", "", '{"fcmV1Message": {"message": 1}}'])
    def test_a_payload_that_no_platform_understands_is_refused(self, text: str) -> None:
        with pytest.raises(Unsendable, match="Notification is malformed") as refusal:
            google(text)
        assert refusal.value.reason is Reason.CLIENT_ERROR

    @pytest.mark.parametrize("make", [google, amazon])
    def test_a_payload_nested_too_deeply_is_refused(self, make: Callable[[Any], Any]) -> None:
        with pytest.raises(Unsendable, match="Notification is malformed"):
            make(nested(300))
        assert apple(nested(300)).body.decode() == nested(300)

    @given(text=st.text(st.characters(codec="utf-8")))
    def test_any_plain_text_can_be_wrapped(self, text: str) -> None:
        plain = payloads.for_apple(device_message(text, "APNS", own=False), BUNDLE)
        assert orjson.loads(plain.body) == {"aps": {"alert": text}}
        assert google(text, own=False)["message"]["data"] == {"default": text}

    @given(document=st.dictionaries(_NAMES, _JSON, max_size=4), ttl=st.sampled_from(["", "0", "60", "x"]))
    def test_any_text_of_its_own_is_sent_or_refused(self, document: Any, ttl: str) -> None:
        for make, name in ((google, "FCM__TTL"), (amazon, "ADM__TTL"), (apple, "APNS__TTL")):
            with contextlib.suppress(Unsendable):
                make(document, **{name: ttl})  # type: ignore[operator]  # three signatures


class TestApple:
    def test_an_alert_has_apples_default_headers(self) -> None:
        assert apple({"aps": {"alert": "a"}}).headers == {
            "apns-topic": BUNDLE,
            "apns-push-type": "alert",
            "apns-priority": "10",
            "apns-expiration": str(SENT_AT // 1000 + FOUR_WEEKS),
        }

    def test_attributes_say_otherwise(self) -> None:
        headers = apple(
            {"aps": {"alert": "a"}},
            APNS__TOPIC="t",
            APNS__PUSH_TYPE="complication",
            APNS__PRIORITY="5",
            APNS__COLLAPSE_ID="c",
            APNS__TTL="60",
        ).headers
        assert headers == {
            "apns-topic": "t",
            "apns-push-type": "complication",
            "apns-priority": "5",
            "apns-collapse-id": "c",
            "apns-expiration": str(SENT_AT // 1000 + 60),
        }

    @pytest.mark.parametrize(
        ("aps", "kind", "priority"),
        [
            ({"content-available": 1}, "background", "5"),
            ({"content-available": True}, "background", "5"),
            ({"content-available": "1"}, "alert", "10"),
            ({"content-available": 0}, "alert", "10"),
            ({"content-available": 1, "badge": 1}, "alert", "10"),
            ({"content-available": 1, "sound": "s"}, "alert", "10"),
            ({"content-available": 1, "alert": "a"}, "alert", "10"),
            ("odd", "alert", "10"),
        ],
    )
    def test_the_kind_of_a_push_follows_from_its_keys(self, aps: Any, kind: str, priority: str) -> None:
        headers = apple({"aps": aps, "mine": 1}).headers
        assert (headers["apns-push-type"], headers["apns-priority"]) == (kind, priority)

    @pytest.mark.parametrize("platform", ["APNS_VOIP", "APNS_VOIP_SANDBOX"])
    def test_calls_have_a_topic_of_their_own(self, platform: str) -> None:
        headers = apple({"call": 1}, platform).headers
        assert (headers["apns-topic"], headers["apns-push-type"]) == (f"{BUNDLE}.voip", "voip")

    def test_a_certificate_says_whose_it_is(self) -> None:
        assert "apns-topic" not in payloads.for_apple(device_message("{}", "APNS_VOIP"), "").headers

    @pytest.mark.parametrize("name", ["TOPIC", "PUSH_TYPE", "PRIORITY", "COLLAPSE_ID"])
    @pytest.mark.parametrize("value", ["a\nb", "a\x00", "é"])
    def test_an_attribute_that_is_no_header_is_refused(self, name: str, value: str) -> None:
        with pytest.raises(Unsendable) as refusal:
            apple({}, **{f"APNS__{name}": value})
        assert refusal.value.reason is Reason.CLIENT_ERROR


class TestTimeToLive:
    @pytest.mark.parametrize("platform", ["APNS", "APNS_SANDBOX", "APNS_VOIP", "MACOS"])
    def test_a_time_to_live_counts_from_the_publication(self, platform: str) -> None:
        headers = apple({}, platform, 30_500, **{f"{platform}__TTL": "60"}).headers
        assert headers["apns-expiration"] == str(SENT_AT // 1000 + 60)

    def test_services_get_what_is_left(self) -> None:
        assert google({"data": {}}, 30_500, FCM__TTL="60")["message"]["android"]["ttl"] == "30s"
        assert google({"data": {}}, 30_500, GCM__TTL="60")["message"]["android"]["ttl"] == "30s"
        assert amazon({"data": {}}, 30_500, ADM__TTL="60")["expiresAfter"] == 30

    def test_the_attribute_wins_over_the_body(self) -> None:
        body = {"fcmV1Message": {"message": {"android": {"ttl": "5s", "priority": "high"}}}}
        android = google(body, FCM__TTL="60")["message"]["android"]
        assert android == {"ttl": "60s", "priority": "high"}
        assert google({"time_to_live": 5}, FCM__TTL="60")["message"]["android"]["ttl"] == "60s"

    def test_a_message_past_its_time_is_not_handed_over(self) -> None:
        assert apple({}, after_ms=60_999, APNS__TTL="60").headers["apns-expiration"] == "0"
        with pytest.raises(Unsendable) as refusal:
            apple({}, after_ms=61_000, APNS__TTL="60")
        assert refusal.value.reason is Reason.EXPIRED

    def test_a_ttl_of_zero_is_sent_to_apple_and_google_and_refused_for_amazon(self) -> None:
        assert apple({}, APNS__TTL="0").headers["apns-expiration"] == "0"
        assert google({}, FCM__TTL="0")["message"]["android"]["ttl"] == "0s"
        with pytest.raises(Unsendable) as refusal:
            amazon({}, ADM__TTL="0")
        assert refusal.value.reason is Reason.EXPIRED

    @pytest.mark.parametrize("ttl", ["-1", "1.5", "x", "٣", "9" * 11, "9" * 5000])
    def test_a_time_to_live_is_a_number(self, ttl: str) -> None:
        with pytest.raises(Unsendable) as refusal:
            apple({}, APNS__TTL=ttl)
        assert refusal.value.reason is Reason.CLIENT_ERROR

    def test_other_platforms_have_their_own(self) -> None:
        assert apple({}, after_ms=61_000, APNS_SANDBOX__TTL="60").headers["apns-expiration"] == str(
            SENT_AT // 1000 + FOUR_WEEKS
        )


class TestGoogle:
    def test_a_message_of_http_v1_is_sent_as_it_is(self) -> None:
        message = {"notification": {"title": "t"}, "android": {"ttl": "10023.32s"}, "fcm_options": {"a": "l"}}
        sent = google({"fcmV1Message": {"validate_only": True, "message": message}})
        assert sent == {"validate_only": True, "message": {**message, "token": "the token"}}

    def test_a_legacy_message_says_the_same_to_every_kind_of_device(self) -> None:
        """The example of "Using the legacy payload structure to send messages to the FCM v1 API"."""
        names = ("title", "body", "body_loc_key", "click_action", "color", "icon", "sound", "tag")
        shown = {name: name for name in (*names, "title_loc_key")} | {
            "android_channel_id": "channel",
            "body_loc_args": ["b"],
            "title_loc_args": ["t"],
        }
        assert google({"notification": shown, "data": {"message": "priority message"}}) == {
            "message": {
                "token": "the token",
                "notification": {"title": "title", "body": "body"},
                "android": {
                    "priority": "high",
                    "notification": {
                        **{name: name for name in (*names, "title_loc_key")},
                        "channel_id": "channel",
                        "body_loc_args": ["b"],
                        "title_loc_args": ["t"],
                    },
                    "data": {"message": "priority message"},
                },
                "apns": {
                    "payload": {
                        "aps": {
                            "alert": {
                                "title-loc-args": ["t"],
                                "title-loc-key": "title_loc_key",
                                "loc-args": ["b"],
                                "loc-key": "body_loc_key",
                                "title": "title",
                                "body": "body",
                            },
                            "category": "click_action",
                            "sound": "sound",
                        }
                    }
                },
                "webpush": {
                    "notification": {"icon": "icon", "tag": "tag", "body": "body", "title": "title"},
                    "data": {"message": "priority message"},
                },
                "data": {"message": "priority message"},
            }
        }

    def test_members_beside_a_legacy_message_are_translated(self) -> None:
        sent = google(
            {
                "data": {"k": "v"},
                "priority": "normal",
                "collapse_key": "c",
                "time_to_live": 5,
                "dry_run": True,
                "content_available": True,
                "mutable_content": True,
            }
        )
        assert sent["validate_only"] is True
        assert sent["message"]["android"] == {
            "priority": "normal",
            "collapse_key": "c",
            "ttl": "5s",
            "data": {"k": "v"},
        }
        assert sent["message"]["apns"]["payload"]["aps"] == {"content-available": 1, "mutable-content": 1}

    @pytest.mark.parametrize(("badge", "to"), [(1, "apns"), ("1", "webpush")])
    def test_a_badge_is_sent_to_the_platform_of_its_type(self, badge: Any, to: str) -> None:
        message = google({"notification": {"badge": badge}})["message"]
        shown = {"apns": {"payload": {"aps": {"badge": 1}}}, "webpush": {"notification": {"badge": "1"}}}
        assert {name: message[name] for name in ("apns", "webpush") if name in message} == {to: shown[to]}


class TestFaults:
    @pytest.mark.parametrize(
        ("platform", "text", "fault"),
        [
            ("APNS", '{"aps":{}}', None),
            ("APNS", "hello", "Notification is malformed"),
            ("GCM", "[]", "Notification is malformed"),
            ("APNS", '{"a":"%s"}' % ("x" * 4088), None),
            ("APNS", '{"a":"%s"}' % ("x" * 4089), "Notification is too long"),
            ("MACOS", '{"a":"%s"}' % ("é" * 2045), "Notification is too long"),
            ("APNS_VOIP", '{"a":"%s"}' % ("x" * 5112), None),
            ("APNS_VOIP", '{"a":"%s"}' % ("x" * 5113), "Notification is too long"),
            ("GCM", '{"data":{"a":"%s"}}' % ("x" * 4088), None),
            ("GCM", '{"data":{"a":"%s"}}' % ("x" * 4089), "Notification data is larger than allowed limit"),
            ("GCM", nested(300), "Notification is malformed"),
            ("WNS", '{"a":"%s"}' % ("x" * 9000), None),
        ],
    )
    def test_a_text_is_looked_at_before_it_is_published(
        self, platform: str, text: str, fault: str | None
    ) -> None:
        assert payloads.fault_of(platform, text) == fault
