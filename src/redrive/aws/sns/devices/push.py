"""Pushing to devices: the endpoint of protocol `application`, which says everything in the words of push services.

What a service says of a device comes back to it: a token that is none any more switches the device off
(`Enabled=false`), as "Amazon SNS management of Firebase Cloud Messaging endpoints" has it, and a new token takes the
place of the old one. Credentials that a service does not know switch nothing off: AWS does not say what disables an
application, and one that is mended within the six hours of the schedule loses nothing.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import orjson

from redrive.aws.sns.devices import payloads, platform
from redrive.aws.sns.devices.events import FAILED, FAILURES_TO, UPDATED, Events
from redrive.aws.sns.devices.payloads import DeviceMessage, Notification, Unsendable
from redrive.aws.sns.devices.platform import APPLICATION, DEVICE, ENABLED, TOKEN, Application, Device
from redrive.aws.sns.notifications.notification import CONTENT_TYPE, PublishedMessage
from redrive.aws.sns.notifications.notification_renderer import TIMEOUT_MS
from redrive.engine.engine import Engine
from redrive.engine.ports import Endpoint, PushRequest
from redrive.engine.resources import Draft
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery
from redrive.model.topic import Subscription

logger = logging.getLogger(__name__)

#: The header of a delivery that is the message's text for the device's platform.
OWN_TEXT: Final = "text"
#: The identifier of an attempt that is the device's token.
PUSHED_TO: Final = "token"

# The service of each platform that is pushed to.
_SERVICES: Final[Mapping[str, str]] = {
    "ADM": "adm",
    "APNS": "apns",
    "APNS_SANDBOX": "apns_sandbox",
    "APNS_VOIP": "apns",
    "APNS_VOIP_SANDBOX": "apns_sandbox",
    "GCM": "fcm",
    "MACOS": "apns",
    "MACOS_SANDBOX": "apns_sandbox",
}
_JSON: Final = "application/json"


async def render(subscription: Subscription, delivery: Delivery) -> PushRequest:
    """The push request for a platform endpoint: JSON where the message has a text for its platform."""
    return push_request_of(subscription, delivery, orjson.loads(delivery.headers or b"{}").get(OWN_TEXT))


def push_request_of(subscription: Subscription, delivery: Delivery, platform_text: str | None) -> PushRequest:
    """The push for a platform endpoint, before its platform's payload is made.

    Args:
        subscription: Whose delivery.
        delivery: As for `NotificationRenderer.push_request`.
        platform_text: The message's own text for the platform, if it has one: then the request's content type is JSON.
    """
    published = PublishedMessage.unpack(delivery.headers or b"{}")
    headers = {
        name: value
        for name, (data_type, value) in published.attributes.items()
        if name.startswith(payloads.ATTRIBUTES) and not data_type.startswith("Binary")
    }
    headers[payloads.SENT_AT] = str(published.sent_at)
    text = delivery.body if platform_text is None else platform_text
    content_type = CONTENT_TYPE if platform_text is None else _JSON
    return PushRequest(subscription.endpoint, text.encode(), content_type, headers, TIMEOUT_MS)


class DeviceEndpoint:
    """Pushes to platform endpoints by their ARNs (`redrive.engine.ports.Endpoint`).

    A request is as `push_request_of` makes it.
    """

    def __init__(self, engine: Engine, push: Endpoint) -> None:
        """Look devices up in this engine's directory.

        Args:
            engine: Whose directory, and whose topics hear of events.
            push: Hands notifications to push services, as `redrive.endpoints.push.endpoint` says.
        """
        self._resources = engine.resources
        self._documents = engine.resources.documents
        self._clock = engine.clock
        self._events = Events(engine)
        self._push = push
        self._applications: dict[str, Application] = {}

    async def push(self, push_request: PushRequest) -> Attempt:
        """Push it, and change the device if the push service says that its token is invalid or has a successor.

        Raises:
            StoreUnavailable: The state of the device is unknown: it is pushed to again.
        """
        device_name = platform.device_at(push_request.endpoint)
        if device_name is None:
            return _NO_DEVICE
        device = await self._documents.get(DEVICE, device_name.key)
        if device is None:
            return _NO_DEVICE
        application = await self._documents.get(APPLICATION, device_name.application.key)
        if application is None:
            self._applications.pop(device_name.application.key, None)
            return _refusal(Reason.MISSING, HTTPStatus.NOT_FOUND, "Platform application does not exist")
        self._applications[device_name.application.key] = application
        attempt = await self._push_to(application, device, push_request)
        identifiers = [(PUSHED_TO, device.attributes[TOKEN])]
        if topic := application.attributes.get(f"Event{FAILED}"):
            identifiers.append((FAILURES_TO, topic))
        return replace(attempt, identifiers=tuple(identifiers))

    async def close(self) -> None:
        """Nothing has to be closed."""

    def application_of(self, endpoint: str) -> Application | None:
        """The application of a platform endpoint that was pushed to, as this node remembers it."""
        device_name = platform.device_at(endpoint)
        if device_name is None:
            return None
        key = device_name.application.key
        return self._documents.known(APPLICATION, key) or self._applications.get(key)

    async def _push_to(self, application: Application, device: Device, push_request: PushRequest) -> Attempt:
        """Push a message to a device, unless it or its application is disabled."""
        if application.attributes[ENABLED] != "true":
            return _refusal(Reason.DISABLED, HTTPStatus.BAD_REQUEST, "Platform application is disabled")
        if not device.enabled:
            return _refusal(Reason.DISABLED, HTTPStatus.BAD_REQUEST, "Endpoint is disabled")
        service = _SERVICES.get(application.name.platform)
        if service is None:
            return _refusal(Reason.UNMADE, 0, f"this server does not push to {application.name.platform}")
        try:
            notification = self._notification(application, device, push_request)
        except Unsendable as refusal:
            return _refusal(refusal.reason, HTTPStatus.BAD_REQUEST, str(refusal))
        attempt = await self._push.push(
            PushRequest(
                device.attributes[TOKEN],
                notification.body,
                _JSON,
                {"service": service, **_sender(application), **notification.headers},
                push_request.timeout_ms,
            )
        )
        await self._apply_answer(device, attempt)
        return attempt

    def _notification(
        self, application: Application, device: Device, push_request: PushRequest
    ) -> Notification:
        device_message = DeviceMessage(
            platform=application.name.platform,
            text=push_request.body.decode(),
            is_own=push_request.content_type == _JSON,
            attributes=push_request.headers,
            sent_at=int(push_request.headers[payloads.SENT_AT]),
            now=self._clock.now(),
        )
        match _SERVICES[device_message.platform]:
            case "fcm":
                return payloads.for_google(device_message, device.attributes[TOKEN])
            case "adm":
                return payloads.for_amazon(device_message)
            case _:
                bundle = application.attributes.get("ApplePlatformBundleID", "")
                return payloads.for_apple(device_message, bundle)

    # ---- what services say of devices ------------------------------------------------------------------------

    async def _apply_answer(self, device: Device, attempt: Attempt) -> None:
        """Disable a device that the push service has lost, or store the token that has replaced its own."""
        token = dict(attempt.identifiers).get(PUSHED_TO, device.attributes[TOKEN])
        if attempt.reason is Reason.MISSING:
            await self._change(device, {ENABLED: "false"})
            logger.info("platform.endpoint_disabled endpoint=%s: %s", device.arn, attempt.response)
        elif token != device.attributes[TOKEN]:
            await self._change(device, {TOKEN: token})

    async def _change(self, device: Device, attributes: Mapping[str, str]) -> None:
        """Change a device, unless its owner has given it another token meanwhile.

        Where another device is registered under its new token already, this one is switched off.
        """

        async def decide(draft: Draft) -> Device | None:
            current: Device | None = await draft.get(DEVICE, device.key)
            if current is None or current.attributes[TOKEN] != device.attributes[TOKEN]:
                return None
            after = _with_attributes(current, attributes)
            if after == current:
                return None
            token_holder = await platform.put_in(draft, current, after)
            if token_holder is None:
                return after
            # Another device has the token already, and each token is of one.
            disabled = _with_attributes(current, {ENABLED: "false"})
            draft.change(DEVICE, current.key, current, lambda _: disabled)
            return None if disabled == current else disabled

        after = await self._resources.write(decide)
        if after is not None:
            await self._events.tell(after, UPDATED)


def _with_attributes(device: Device, attributes: Mapping[str, str]) -> Device:
    return replace(device, attributes={**device.attributes, **attributes})


def _sender(application: Application) -> dict[str, str]:
    """The sender, as the push services know it."""
    attributes = application.attributes
    return {
        "credential": attributes["PlatformCredential"],
        "principal": attributes.get("PlatformPrincipal", ""),
        "team": attributes.get("ApplePlatformTeamID", ""),
    }


def _refusal(reason: Reason, status: int, text: str) -> Attempt:
    return Attempt(AttemptResult.REFUSED, reason, status, text)


_NO_DEVICE: Final = _refusal(Reason.MISSING, HTTPStatus.NOT_FOUND, "Endpoint does not exist")
