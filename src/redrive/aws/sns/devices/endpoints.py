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
from redrive.aws.sns.documents.errors import PAGES, AttributeRefused, attributes_error, invalid, no_such
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
        new_device = _with_attributes(Device(name, id_text(self._engine.runtime.message_id())), attributes)
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
        before, after = await self._resources.write(lambda draft: _set_in(draft, device_name, attributes))
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
    """Write a new device of an existing application; returns it, or the like device that has the token already."""
    if await draft.get(APPLICATION, device.application.key) is None:
        raise no_such("PlatformApplication")
    holder = await platform.put_in(draft, None, device)
    if holder is not None and holder.attributes != device.attributes:
        raise _token_in_use(holder)
    return holder or device


async def _set_in(draft: Draft, device: Device, attributes: Mapping[str, str]) -> tuple[Device, Device]:
    """Set attributes of a device; returns the device before and after that."""
    before: Device | None = await draft.get(DEVICE, device.key)
    if before is None:
        raise no_such("Endpoint")
    after = _with_attributes(before, attributes)
    if after == before:
        return before, after
    holder = await platform.put_in(draft, before, after)
    if holder is not None:
        raise _token_in_use(holder)
    return before, after


def _with_attributes(device: Device, attributes: Mapping[str, str]) -> Device:
    try:
        new_values = {name: _checked_value(name, value) for name, value in attributes.items()}
    except AttributeRefused as refusal:
        raise attributes_error(refusal) from None
    return replace(device, attributes={**device.attributes, **new_values})


def _checked_value(name: str, value: str) -> str:
    """The value of an attribute as it is stored; raises AttributeRefused."""
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


def _token_in_use(device: Device) -> Exception:
    return invalid(
        f"Token Reason: Endpoint {device.arn} already exists with the same Token, but different attributes."
    )
