"""Platform endpoints, the devices of a platform application: create, find, change, delete."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from redrive.engine.engine import Engine
from redrive.model.errors import Conflict, NotFound
from redrive.model.message import id_text
from redrive.protocols.aws.call import Call
from redrive.protocols.aws.sns import paging, values
from redrive.protocols.aws.sns.devices import events, platform
from redrive.protocols.aws.sns.devices.events import Events
from redrive.protocols.aws.sns.devices.platform import APPLICATION, DEVICE, OF_TOKEN, ApplicationName, Device
from redrive.protocols.aws.sns.errors import AttributeRefused, invalid, no_such, refused_at_creation
from redrive.protocols.aws.wire.shapes import Structure

USER_DATA_BYTES_MAX: Final = 2048


class PlatformEndpointOperations:
    """What is done to platform endpoints."""

    def __init__(self, engine: Engine) -> None:
        """Keep them in this engine's directory."""
        self._engine = engine
        self._directory = engine.directory
        self._events = Events(engine)

    async def create_platform_endpoint(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/sns/latest/api/API_CreatePlatformEndpoint.html."""
        name = platform.application_in(call, params["PlatformApplicationArn"], "CreatePlatformEndpoint")
        if not params["Token"]:
            raise invalid("Token Reason: cannot be empty")
        given: dict[str, str] = {platform.TOKEN: params["Token"], platform.ENABLED: "true"}
        if params.get(platform.USER_DATA):
            given[platform.USER_DATA] = params[platform.USER_DATA]
        given |= params.get("Attributes") or {}
        if await self._directory.get(APPLICATION, name.key) is None:
            raise no_such("PlatformApplication")
        wanted = _changed(Device(name, id_text(self._engine.runtime.message_id())), given)
        made = await self._made(wanted)
        if made is wanted:
            await self._events.tell(made, events.CREATED)
        return {"EndpointArn": made.arn}

    async def _made(self, wanted: Device) -> Device:
        """The device with the token: one that stands already, or this."""
        key = platform.token_key(wanted.application, wanted.attributes[platform.TOKEN])
        while True:
            known = await self._directory.get(OF_TOKEN, key)
            existing = None if known is None else await self._device(wanted.application, known)
            if existing is not None:
                _check_same(existing, wanted)
                return existing
            if known is not None:  # its device is gone: whoever removed it got no further
                await self._directory.remove(OF_TOKEN, key)
            # The device comes first: a token never leads to nothing for longer than a crash takes.
            await self._directory.create(DEVICE, wanted.key, wanted)
            try:
                await self._directory.create(OF_TOKEN, key, wanted.id)
            except Conflict:
                await self._directory.remove(DEVICE, wanted.key)
            else:
                return wanted

    async def _device(self, name: ApplicationName, device_id: str) -> Device | None:
        return await self._directory.get(DEVICE, f"{name.key}/{device_id}")

    async def get_endpoint_attributes(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/sns/latest/api/API_GetEndpointAttributes.html."""
        named = platform.device_in(call, params["EndpointArn"], "GetEndpointAttributes")
        device = await self._directory.get(DEVICE, named.key)
        if device is None:
            raise no_such("Endpoint")
        return {"Attributes": dict(device.attributes)}

    async def set_endpoint_attributes(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/sns/latest/api/API_SetEndpointAttributes.html."""
        named = platform.device_in(call, params["EndpointArn"], "SetEndpointAttributes")
        given: Mapping[str, str] = params["Attributes"]
        before = await self._directory.get(DEVICE, named.key)
        if before is None:
            raise no_such("Endpoint")
        await self._move_token(before, _changed(before, given))
        try:
            after = await self._directory.update(DEVICE, named.key, lambda current: _changed(current, given))
        except NotFound:
            raise no_such("Endpoint") from None
        if after != before:
            await self._events.tell(after, events.UPDATED)
        return {}

    async def _move_token(self, before: Device, after: Device) -> None:
        try:
            await platform.move_token(self._directory, before, after)
        except Conflict:
            key = platform.token_key(after.application, after.attributes[platform.TOKEN])
            other = await self._directory.get(OF_TOKEN, key)
            raise _taken(replace(after, id=other or after.id)) from None

    async def list_endpoints_by_platform_application(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/sns/latest/api/API_ListEndpointsByPlatformApplication.html."""
        name = platform.application_in(
            call, params["PlatformApplicationArn"], "ListEndpointsByPlatformApplication"
        )
        if await self._directory.get(APPLICATION, name.key) is None:
            raise no_such("PlatformApplication")
        found = await self._directory.find(DEVICE, f"{name.key}/", paging.after(params), paging.PAGE + 1)
        page, token = paging.paged(found, lambda device: device.key)
        listed = [{"EndpointArn": one.arn, "Attributes": dict(one.attributes)} for one in page]
        return {"Endpoints": listed, **token}

    async def delete_endpoint(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/sns/latest/api/API_DeleteEndpoint.html; its subscriptions stay."""
        named = platform.device_in(call, params["EndpointArn"], "DeleteEndpoint")
        device = await self._directory.get(DEVICE, named.key)
        if device is not None:
            await platform.remove_device(self._engine, device)
            await self._events.tell(device, events.DELETED)
        return {}


def _changed(device: Device, given: Mapping[str, str]) -> Device:
    try:
        changed = {name: _checked(name, value) for name, value in given.items()}
    except AttributeRefused as refusal:
        raise refused_at_creation(refusal) from None
    return replace(device, attributes={**device.attributes, **changed})


def _checked(name: str, value: str) -> str:
    opening = f"Invalid value for attribute: {name}"
    if name == platform.ENABLED:
        return str(values.boolean(opening, value)).lower()
    if name == platform.TOKEN and not value:
        raise AttributeRefused(f"{opening}: cannot be empty")
    if name == platform.USER_DATA and len(value.encode()) > USER_DATA_BYTES_MAX:
        raise AttributeRefused(
            f"{opening}: must be at most {USER_DATA_BYTES_MAX} bytes long in UTF-8 encoding"
        )
    if name not in (platform.TOKEN, platform.USER_DATA):
        raise AttributeRefused(f"Invalid attribute name: {name}")  # chosen
    return value


def _check_same(existing: Device, wanted: Device) -> None:
    if existing.attributes != wanted.attributes:
        raise _taken(existing)


def _taken(device: Device) -> Exception:
    return invalid(
        f"Token Reason: Endpoint {device.arn} already exists with the same Token, but different attributes."
    )
