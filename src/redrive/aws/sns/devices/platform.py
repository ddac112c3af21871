"""Mobile platforms: applications registered with them, and the devices that are an application's endpoints."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

from redrive.aws.kit.call import Call
from redrive.aws.sns.documents import names
from redrive.aws.sns.documents.direct import only_subscription
from redrive.aws.sns.documents.errors import denied, error, invalid
from redrive.aws.wire.arn import read_arn
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Documents, Draft, Resources
from redrive.model.document import Document
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription

# Each platform, and whether an application registers there under a name (PlatformPrincipal) beside its secret.
PLATFORMS: Final[Mapping[str, bool]] = {
    "ADM": True,
    "APNS": True,
    "APNS_SANDBOX": True,
    "APNS_VOIP": True,
    "APNS_VOIP_SANDBOX": True,
    "BAIDU": True,
    "GCM": False,
    "MACOS": True,
    "MACOS_SANDBOX": True,
    "MPNS": False,
    "WNS": True,
}
ENABLED: Final = "Enabled"
TOKEN: Final = "Token"  # noqa: S105 - the attribute's name
USER_DATA: Final = "CustomUserData"
_APPLICATION_SLASHES: Final = 2  # app/GCM/name
_PLATFORM_AND_NAME: Final = 2
_REMOVED_AT_ONCE: Final = 100  # devices, some 10 changes each: 20 ms of SQLite's time
_ENDPOINT_SLASHES: Final = 3  # endpoint/GCM/name/id


class ApplicationName(NamedTuple):
    """An application: account, region, platform and name."""

    account: str
    region: str
    platform: str
    name: str

    @property
    def key(self) -> str:
        """The key of its document; no part holds a slash."""
        return "/".join(self)

    @property
    def arn(self) -> str:
        """The ARN."""
        return f"arn:aws:sns:{self.region}:{self.account}:app/{self.platform}/{self.name}"


@dataclass(frozen=True, slots=True)
class Application(Document):
    """A platform application."""

    restored: ClassVar = {"name": ApplicationName._make}

    name: ApplicationName  # See ApplicationName
    attributes: Mapping[str, str] = field(default_factory=dict)  # As SNS spells them, credentials included


@dataclass(frozen=True, slots=True)
class Device(Document):
    """A platform endpoint: one installation of an application."""

    restored: ClassVar = {"application": ApplicationName._make}

    application: ApplicationName  # Whose
    id: str  # Unique within the application
    # `Token`, `Enabled` and, where given, `CustomUserData`.
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of its document."""
        return f"{self.application.key}/{self.id}"

    @property
    def arn(self) -> str:
        """The ARN."""
        name = self.application
        return f"arn:aws:sns:{name.region}:{name.account}:endpoint/{name.platform}/{name.name}/{self.id}"

    @property
    def topic(self) -> ResourceName:
        """The name of the topic that stands for this device alone: no caller can make or list one there."""
        name = self.application
        return ResourceName(name.account, f"{name.region}:{name.platform}:{name.name}", self.id)

    @property
    def enabled(self) -> bool:
        """True if messages may be published to it."""
        return self.attributes[ENABLED] == "true"


APPLICATION: Final = DocumentKind.of("sns_platform_application", Application)
DEVICE: Final = DocumentKind.of("sns_platform_endpoint", Device)
# Which device of an application has a token: `token_key` to the device's id.
OF_TOKEN: Final[DocumentKind[str]] = DocumentKind(
    "sns_platform_token", lambda device: {"id": device}, lambda document: document["id"]
)


def token_key(application: ApplicationName, token: str) -> str:
    """The key of a token, which may be long and hold any character."""
    return f"{application.key}/{hashlib.sha256(token.encode()).hexdigest()}"


def application_in(call: Call, arn: str, action: str) -> ApplicationName:
    """The application that an ARN means, for an action the caller may do there.

    Raises:
        AwsError: It is not an application's ARN, or another account's.
    """
    _, platform, name = _resource_parts(call, arn, action, "PlatformApplicationArn", _APPLICATION_SLASHES)
    return ApplicationName(call.account, call.region, platform, name)


def device_in(call: Call, arn: str, action: str, parameter: str = "EndpointArn") -> Device:
    """The device that an ARN means, without its attributes, for an action the caller may do there.

    Raises:
        AwsError: It is not an endpoint's ARN, or another account's.
    """
    _, platform, name, device_id = _resource_parts(call, arn, action, parameter, _ENDPOINT_SLASHES)
    return Device(ApplicationName(call.account, call.region, platform, name), device_id)


async def endpoint_subscription(documents: Documents, call: Call, arn: str) -> Subscription:
    """The subscription that stands for a platform endpoint, which need not be stored yet.

    Raises:
        AwsError: `InvalidParameter`: there is no such endpoint; `EndpointDisabled`; `PlatformApplicationDisabled`.
    """
    device_name = device_in(call, arn, "Publish", "TargetArn")
    device = await documents.get(DEVICE, device_name.key)
    application = await documents.get(APPLICATION, device_name.application.key)
    if device is None or application is None:
        raise invalid("TargetArn Reason: No endpoint found for the target arn specified")
    if application.attributes[ENABLED] != "true":
        raise error("PlatformApplicationDisabled", "Platform application is disabled")
    if not device.enabled:
        raise error("EndpointDisabled", "Endpoint is disabled")
    return only_subscription(device.topic, "application", arn)


def _resource_parts(call: Call, arn: str, action: str, parameter: str, slashes: int) -> list[str]:
    """The parts of an ARN's resource, which has so many slashes; refuses the ARN of another account or region."""
    parsed = names.any_arn(arn, parameter)
    if parsed.service != "sns" or parsed.region != call.region:
        raise invalid(parameter)
    if parsed.resource.count("/") != slashes:
        raise invalid(f"{parameter} Reason: Wrong number of slashes in relative portion of the ARN.")
    if parsed.account != call.account:
        raise denied(call.principal.name, action, arn)
    return parsed.resource.split("/")


def device_at(arn: str) -> Device | None:
    """The device of an endpoint ARN, without its attributes, for any caller; None for any other text."""
    parsed = read_arn(arn)
    parts = [] if parsed is None else parsed.resource.split("/")
    if parsed is None or parsed.service != "sns" or len(parts) != _ENDPOINT_SLASHES + 1:
        return None
    _, platform, application, device_id = parts
    return Device(ApplicationName(parsed.account, parsed.region, platform, application), device_id)


def application_behind(topic: ResourceName) -> ApplicationName | None:
    """The application whose device a topic stands for alone (`Device.topic`); None: it is a topic like any other."""
    region, *rest = topic.region.split(":")
    return ApplicationName(topic.account, region, *rest) if len(rest) == _PLATFORM_AND_NAME else None


async def put_in(draft: Draft, before: Device | None, after: Device) -> Device | None:
    """Write a device of an application that the draft has read, and register it under its token.

    Args:
        draft: What is written; it has read the device.
        before: The device as it is stored; None: it is new.
        after: As it is to be.

    Returns:
        Another device of the application that has the token: then nothing is written. Else None.
    """
    key = _token_key(after)
    holder_id = await draft.get(OF_TOKEN, key)
    if holder_id is not None and holder_id != after.id:
        holder: Device | None = await draft.get(DEVICE, f"{after.application.key}/{holder_id}")
        if holder is not None:
            return holder
    if before is not None and _token_key(before) != key:
        await _release_token_in(draft, before)
    if holder_id != after.id:
        draft.put(OF_TOKEN, key, after.id)
    draft.put(DEVICE, after.key, after)
    return None


async def remove_application_in(resources: Resources, draft: Draft, name: ApplicationName) -> bool:
    """Forget an application with its devices; False: it may have more of them, so this has to be called again."""
    prefix = f"{name.key}/"
    devices = await draft.find(DEVICE, prefix, _REMOVED_AT_ONCE)
    for _, device in devices:
        await remove_device_in(resources, draft, device)
    if len(devices) == _REMOVED_AT_ONCE:
        return False
    if await draft.get(APPLICATION, name.key) is not None:
        draft.require_none(DEVICE, prefix)
        draft.remove(APPLICATION, name.key)
    return True


async def remove_device_in(resources: Resources, draft: Draft, device: Device) -> None:
    """Forget a device with its token and what was published to it alone; its subscriptions stay."""
    current: Device | None = await draft.get(DEVICE, device.key)
    if current is None:
        return
    draft.remove(DEVICE, current.key)
    await _release_token_in(draft, current)
    topic = await resources.topics.get_in(draft, current.topic)
    if topic is not None:
        await resources.topics.delete_in(draft, topic)


async def _release_token_in(draft: Draft, device: Device) -> None:
    """Forget the device's token, unless another device has it."""
    if await draft.get(OF_TOKEN, _token_key(device)) == device.id:
        draft.remove(OF_TOKEN, _token_key(device))


def _token_key(device: Device) -> str:
    return token_key(device.application, device.attributes[TOKEN])
