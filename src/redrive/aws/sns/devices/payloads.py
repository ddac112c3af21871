"""Payloads for devices: a message as their platform's push service wants it.

A text that `MessageStructure=json` has for the platform goes as it is, but for Google's, whose service has changed its
words since; any other text is wrapped. Sources, all of the developer guide: "Publishing Amazon SNS notifications with
platform-specific payloads", "Using Google Firebase Cloud Messaging v1 payloads in Amazon SNS", "Mobile push TTL", "Amazon
SNS message attributes".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from redrive.aws.kit.json_cursor import read_object
from redrive.model.attempt import Reason

SENT_AT: Final = "sent-at"  # of a request: when the message was published (ms)
ATTRIBUTES: Final = "AWS.SNS.MOBILE."  # what the names of attributes begin with that are for push services
_APNS: Final = f"{ATTRIBUTES}APNS."
# SNS's own default, where neither the publisher nor the service has another.
_TTL_SECONDS: Final = 28 * 86_400
_TTL_NAMES: Final[Mapping[str, tuple[str, ...]]] = {"GCM": ("FCM", "GCM")}
_MALFORMED: Final = "Notification is malformed"
_TOO_LONG: Final = "Notification is too long"
_TOO_LARGE: Final = "Notification data is larger than allowed limit"
_APPLE_BYTES_MAX: Final = 4096
_APPLE_CALL_BYTES_MAX: Final = 5120
_GOOGLE_BYTES_MAX: Final = 4096
_SECONDS: Final = re.compile("[0-9]{1,10}")
_ALERTING: Final = frozenset({"alert", "badge", "sound"})

# Names of the time when Google's service was called GCM, and what three kinds of device call it now.
_ANDROID: Final[Mapping[str, str]] = {
    **{
        name: name
        for name in (
            "title",
            "body",
            "icon",
            "color",
            "sound",
            "tag",
            "click_action",
            "body_loc_key",
            "body_loc_args",
            "title_loc_key",
            "title_loc_args",
        )
    },
    "android_channel_id": "channel_id",
}
_ALERT: Final[Mapping[str, str]] = {
    "title": "title",
    "body": "body",
    "body_loc_key": "loc-key",
    "body_loc_args": "loc-args",
    "title_loc_key": "title-loc-key",
    "title_loc_args": "title-loc-args",
}
_APS: Final[Mapping[str, str]] = {"click_action": "category", "sound": "sound"}
_WEB: Final[Mapping[str, str]] = {name: name for name in ("title", "body", "icon", "tag")}


class Unsendable(Exception):  # noqa: N818 - an answer, named as a caller says it
    """A refusal to hand a message over, with reason and text."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class DeviceMessage:
    """A message to a device."""

    platform: str  # The device's
    text: str  # The message
    is_own: bool  # Whether the text is the platform's own, in its format
    attributes: Mapping[str, str]  # Those of the message that are for push services
    sent_at: int  # When it was published (ms)
    now: int  # ms


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification for a push service: a body, and the headers that it wants."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def for_apple(device_message: DeviceMessage, bundle: str) -> Notification:
    """A notification for Apple's service.

    Args:
        device_message: The message.
        bundle: The application's bundle id; empty if its certificate says whose it is.

    Raises:
        Unsendable: It is malformed, or its time is over.
    """
    document = _document(device_message) if device_message.is_own else {"aps": {"alert": device_message.text}}
    push_type = device_message.attributes.get(f"{_APNS}PUSH_TYPE")
    push_type = push_type or _push_type(device_message.platform, document)
    if bundle and "VOIP" in device_message.platform:
        bundle = f"{bundle}.voip"
    sent_second, this_second = device_message.sent_at // 1000, device_message.now // 1000
    ttl = _seconds_left(device_message)
    expires_at = sent_second + _TTL_SECONDS if ttl is None else this_second + ttl
    headers = {
        "apns-topic": device_message.attributes.get(f"{_APNS}TOPIC") or bundle,
        "apns-push-type": push_type,
        "apns-expiration": "0" if ttl == 0 else str(expires_at),
        # Apple refuses the other priority for silent notifications.
        "apns-priority": device_message.attributes.get(f"{_APNS}PRIORITY")
        or ("5" if push_type == "background" else "10"),
        "apns-collapse-id": device_message.attributes.get(f"{_APNS}COLLAPSE_ID", ""),
    }
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise Unsendable(Reason.CLIENT_ERROR, "An attribute cannot be said in a header")
    body = device_message.text.encode() if device_message.is_own else _encode(document)
    return Notification(body, {name: value for name, value in headers.items() if value})


def for_google(device_message: DeviceMessage, token: str) -> Notification:
    """A message for Firebase Cloud Messaging, to the device of a token; raises Unsendable."""
    document: dict[str, Any] = (
        _document(device_message) if device_message.is_own else {"data": {"default": device_message.text}}
    )
    request = document.get("fcmV1Message") if "fcmV1Message" in document else _from_legacy(document)
    message = request.get("message") if isinstance(request, dict) else None
    if not isinstance(request, dict) or not isinstance(message, dict):
        raise _malformed()
    ttl = _seconds_left(device_message)
    if ttl is not None:
        android = message.setdefault("android", {})
        if not isinstance(android, dict):
            raise _malformed()
        android["ttl"] = f"{ttl}s"
    message["token"] = token
    return Notification(_encode(request))


def for_amazon(device_message: DeviceMessage) -> Notification:
    """A message for Amazon Device Messaging, where a TTL of 0 means nothing; raises Unsendable."""
    document: dict[str, Any] = (
        _document(device_message) if device_message.is_own else {"data": {"default": device_message.text}}
    )
    ttl = _seconds_left(device_message)
    if ttl == 0:
        raise _expired()
    if ttl is not None:
        document["expiresAfter"] = ttl
    return Notification(_encode(document))


def fault_of(platform: str, text: str) -> str | None:
    """The fault of a text for a platform, in SNS's words; None for a good text."""
    document = read_object(text)
    if document is None:
        return _MALFORMED
    if platform.startswith(("APNS", "MACOS")):
        bytes_max = _APPLE_CALL_BYTES_MAX if "VOIP" in platform else _APPLE_BYTES_MAX
        return _TOO_LONG if len(text.encode()) > bytes_max else None
    if platform == "GCM":
        return _fault_of_google(document)
    return None


def _fault_of_google(document: Mapping[str, Any]) -> str | None:
    try:
        return _TOO_LARGE if len(_encode(document.get("data"))) > _GOOGLE_BYTES_MAX else None
    except Unsendable as refusal:
        return str(refusal)


def _document(device_message: DeviceMessage) -> dict[str, Any]:
    document = read_object(device_message.text)
    if document is None:
        raise _malformed()
    return document


def _encode(document: Any) -> bytes:
    """The document as JSON. One that is nested too deep is malformed: orjson reads 1,000 levels and writes 254."""
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        raise _malformed() from None


def _malformed() -> Unsendable:
    return Unsendable(Reason.CLIENT_ERROR, _MALFORMED)


def _expired() -> Unsendable:
    return Unsendable(Reason.EXPIRED, "The notification's time to live is over")


def _seconds_left(device_message: DeviceMessage) -> int | None:
    """The seconds for which the service may try, the rest of the publisher's TTL; None: the publisher gave none."""
    names = _TTL_NAMES.get(device_message.platform, (device_message.platform,))
    values = [device_message.attributes.get(f"{ATTRIBUTES}{name}.TTL") for name in names]
    text = next(filter(None, values), None)
    if text is None:
        return None
    if not _SECONDS.fullmatch(text):
        raise Unsendable(Reason.CLIENT_ERROR, "The TTL is not a number of seconds")
    ttl = int(text) - (device_message.now - device_message.sent_at) // 1000
    if ttl < 0:
        raise _expired()
    return ttl


def _push_type(platform: str, document: Mapping[str, Any]) -> str:
    """The `apns-push-type`: `voip`, `background` for a silent notification, else `alert`, as SNS determines it."""
    if "VOIP" in platform:
        return "voip"
    aps = document.get("aps")
    is_silent = (
        isinstance(aps, dict) and aps.get("content-available") in (1, True) and not _ALERTING & aps.keys()
    )
    return "background" if is_silent else "alert"


# ---- Google's legacy format ------------------------------------------------------------------------------------------


def _from_legacy(document: Mapping[str, Any]) -> dict[str, Any]:
    """The request of FCM's HTTP v1 that stands for one in the legacy format of GCM, for every kind of device."""
    notification = document.get("notification") or {}
    values = document.get("data")
    if not isinstance(notification, dict):
        raise _malformed()
    aps = _aps(document, notification)
    message = {
        "notification": _rename(notification, {"title": "title", "body": "body"}),
        "android": _without_none(
            {
                "priority": document.get("priority") or ("high" if notification else None),
                "collapse_key": document.get("collapse_key"),
                "restricted_package_name": document.get("restricted_package_name"),
                "ttl": f"{document['time_to_live']}s" if "time_to_live" in document else None,
                "notification": _rename(notification, _ANDROID),
                "data": values,
            }
        ),
        "apns": {"payload": {"aps": aps}} if aps else None,
        "webpush": _without_none({"notification": _web_notification(notification), "data": values}),
        "data": values,
    }
    return {"message": _without_none(message)} | ({"validate_only": True} if document.get("dry_run") else {})


def _aps(document: Mapping[str, Any], notification: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a legacy message for Apple's devices."""
    badge = notification.get("badge")
    return _without_none(
        {
            "alert": _rename(notification, _ALERT),
            **_rename(notification, _APS),
            "badge": badge if isinstance(badge, int) else None,
            "content-available": 1 if document.get("content_available") else None,
            "mutable-content": 1 if document.get("mutable_content") else None,
        }
    )


def _web_notification(notification: Mapping[str, Any]) -> dict[str, Any]:
    badge = notification.get("badge")
    return _rename(notification, _WEB) | ({"badge": badge} if isinstance(badge, str) else {})


def _rename(members: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {new: members[old] for old, new in names.items() if old in members}


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in members.items() if value not in (None, {})}
