"""Platform endpoints, the devices of a platform application: create, find, change, delete."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from redrive.aws.kit.attributes import BOOLEAN
from redrive.aws.kit.call import Call
from redrive.aws.sns.devices import events, platform
from redrive.aws.sns.devices.events import Events
from redrive.aws.sns.devices.platform import APPLICATION, DEVICE, Device
from redrive.aws.sns.documents import values
from redrive.aws.sns.documents.errors import PAGES, AttributeRefused, invalid, no_such, refused_at_creation
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import id_text

USER_DATA_BYTES_MAX: Final = 2048


class PlatformEndpointOperations:
    """Operations on platform endpoints."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._resources = engine.resources
        self._documents = engine.resources.documents
        self._events = Events(engine)

    async def create_platform_endpoint(self, call: Call, params: Structure) -> Structure:
        name = platform.application_in(call, params["PlatformApplicationArn"], "CreatePlatformEndpoint")
        if not params["Token"]:
            raise invalid("Token Reason: cannot be empty")
        attributes: dict[str, str] = {platform.TOKEN: params["Token"], platform.ENABLED: "true"}
        if params.get(platform.USER_DATA):
            attributes[platform.USER_DATA] = params[platform.USER_DATA]
        attributes |= params.get("Attributes") or {}
        new_device = _changed(Device(name, id_text(self._engine.runtime.message_id())), attributes)
        device = await self._resources.write(lambda draft: _put_in(draft, new_device))
        if device is new_device:
            await self._events.tell(device, events.CREATED)
        return {"EndpointArn": device.arn}

    async def get_endpoint_attributes(self, call: Call, params: Structure) -> Structure:
        device_name = platform.device_in(call, params["EndpointArn"], "GetEndpointAttributes")
        device = await self._documents.get(DEVICE, device_name.key)
        if device is None:
            raise no_such("Endpoint")
        return {"Attributes": dict(device.attributes)}

    async def set_endpoint_attributes(self, call: Call, params: Structure) -> Structure:
        device_name = platform.device_in(call, params["EndpointArn"], "SetEndpointAttributes")
        attributes: Mapping[str, str] = params["Attributes"]
        before, after = await self._resources.write(lambda draft: _set(draft, device_name, attributes))
        if after != before:
            await self._events.tell(after, events.UPDATED)
        return {}

    async def list_endpoints_by_platform_application(self, call: Call, params: Structure) -> Structure:
        operation = "ListEndpointsByPlatformApplication"
        name = platform.application_in(call, params["PlatformApplicationArn"], operation)
        if await self._documents.get(APPLICATION, name.key) is None:
            raise no_such("PlatformApplication")
        after = PAGES.after(operation, params)
        devices = await self._documents.find(DEVICE, f"{name.key}/", after, PAGES.size + 1)

        def as_structure(device: Device) -> Structure:
            return {"EndpointArn": device.arn, "Attributes": dict(device.attributes)}

        return PAGES.of(operation, params, devices, as_structure, lambda device: device.key)

    async def delete_endpoint(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/sns/latest/api/API_DeleteEndpoint.html; its subscriptions stay."""
        device_name = platform.device_in(call, params["EndpointArn"], "DeleteEndpoint")
        device = await self._documents.get(DEVICE, device_name.key)
        if device is not None:
            await self._resources.write(
                lambda draft: platform.remove_device_in(self._resources, draft, device)
            )
            await self._events.tell(device, events.DELETED)
        return {}


async def _put_in(draft: Draft, device: Device) -> Device:
    """The device with the token: one that stands already, or this; its application stands as long."""
    if await draft.get(APPLICATION, device.application.key) is None:
        raise no_such("PlatformApplication")
    holder = await platform.put_in(draft, None, device)
    if holder is not None and holder.attributes != device.attributes:
        raise _taken(holder)
    return holder or device


async def _set(draft: Draft, device: Device, attributes: Mapping[str, str]) -> tuple[Device, Device]:
    """A device before and after its attributes were set."""
    before: Device | None = await draft.get(DEVICE, device.key)
    if before is None:
        raise no_such("Endpoint")
    after = _changed(before, attributes)
    if after == before:
        return before, after
    holder = await platform.put_in(draft, before, after)
    if holder is not None:
        raise _taken(holder)
    return before, after


def _changed(device: Device, attributes: Mapping[str, str]) -> Device:
    try:
        changed = {name: _checked(name, value) for name, value in attributes.items()}
    except AttributeRefused as refusal:
        raise refused_at_creation(refusal) from None
    return replace(device, attributes={**device.attributes, **changed})


def _checked(name: str, value: str) -> str:
    opening = f"Invalid value for attribute: {name}"
    if name == platform.ENABLED:
        return str(values.read(BOOLEAN, opening, value)).lower()
    if name == platform.TOKEN and not value:
        raise AttributeRefused(f"{opening}: cannot be empty")
    if name == platform.USER_DATA and len(value.encode()) > USER_DATA_BYTES_MAX:
        raise AttributeRefused(
            f"{opening}: must be at most {USER_DATA_BYTES_MAX} bytes long in UTF-8 encoding"
        )
    if name not in (platform.TOKEN, platform.USER_DATA):
        raise AttributeRefused(f"Invalid attribute name: {name}")  # chosen
    return value


def _taken(device: Device) -> Exception:
    return invalid(
        f"Token Reason: Endpoint {device.arn} already exists with the same Token, but different attributes."
    )
