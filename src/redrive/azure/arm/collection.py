"""Collections: the resource manager's operations on the resources of one type, by its specification."""

import base64
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final, Generic

from redrive.azure.arm import paging, schema
from redrive.azure.arm.call import ArmCall, Verb, in_progress
from redrive.azure.arm.resource import (
    IN_GROUP,
    IN_SUBSCRIPTION,
    PROVIDER,
    ArmResourceSpec,
    R,
    apply_patch,
    apply_put,
    body_of,
    check_name,
    id_of,
    no_such,
)
from redrive.azure.eventgrid.settings import ID, KEYS
from redrive.azure.wire.answers import empty_answer, invalid, json_answer
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.engine import Engine
from redrive.model.http import Response

_KEY_BYTES: Final = 32

# Makes the resource to be written of the one that exists, or of None; may be called again.
Accept = Callable[[R | None], R]


class ArmCollection(ABC, Generic[R]):
    """The operations on the resources of one type (`redrive.azure.arm.service.Operations`)."""

    def __init__(self, engine: Engine, spec: ArmResourceSpec) -> None:
        self._resources = engine.resources
        self._rng = engine.runtime.rng
        self._spec = spec

    @property
    def routes(self) -> Mapping[str, Verb]:
        """The handlers by method and path (`Operations.routes`)."""
        types: tuple[str, ...] = self._spec.types
        # For a type of its own `topics/{topic}`, for one within another `domains/{domain}/topics/{topic}`.
        one = "/".join((IN_GROUP, *(f"{kind}/{{{kind.removesuffix('s')}}}" for kind in types)))
        several = one.rpartition("/")[0]
        routes: dict[str, Verb] = {f"PUT {one}": self.put, f"GET {one}": self.get}
        if self._spec.patch_status is not None:
            routes[f"PATCH {one}"] = self.patch
        routes |= {f"DELETE {one}": self.delete, f"GET {several}": self.list}
        if self._spec.has_keys:
            routes[f"POST {one}/listKeys"] = self.list_keys
            routes[f"POST {one}/regenerateKey"] = self.regenerate_key
        if len(types) == 1:
            routes[f"GET {IN_SUBSCRIPTION}/{types[0]}"] = self.list
        return routes

    # ---- operations --------------------------------------------------------------------------------------------

    async def put(self, call: ArmCall) -> Response:
        """Make a resource, or replace what can be replaced of it."""
        resource = self._resource(call)
        check_name(resource.name)
        document = {} if self._spec.properties is None else call.document

        def accept(existing: R | None) -> R:
            return apply_put(self._spec, existing or self._create(resource, call.now), document)

        record, is_new = await self._put(call, resource, accept)
        return self._write_answer(
            call, record, "Creating", HTTPStatus.CREATED if is_new else self._spec.replaced_status
        )

    async def get(self, call: ArmCall) -> Response:
        """Show a resource."""
        return json_answer(body_of(self._spec, await self._get_existing(call), call.base_url))

    async def patch(self, call: ArmCall) -> Response:
        """Change some of a resource."""
        existing, document = await self._get_existing(call), call.document
        record = await self._update(existing, lambda record: apply_patch(self._spec, record, document))
        return self._write_answer(call, record, "Updating", self._spec.patch_status or HTTPStatus.OK)

    async def delete(self, call: ArmCall) -> Response:
        """Remove a resource with all that is in it; it is not an error that there is none."""
        await self._remove(self._resource(call))
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def list(self, call: ArmCall) -> Response:
        """The resources of a group or an Azure subscription, or in another resource."""
        return await paging.page(
            call,
            lambda after, limit: self._find(call, after, limit),
            lambda record: record.name.key,
            lambda record: id_of(record.attributes).name if self._lists(record) else None,
            lambda record: body_of(self._spec, record, call.base_url),
        )

    async def list_keys(self, call: ArmCall) -> Response:
        """The two access keys of a resource."""
        return _keys(await self._get_existing(call))

    async def regenerate_key(self, call: ArmCall) -> Response:
        """Put a fresh access key in the place of one of the two."""
        existing = await self._get_existing(call)
        key_name = schema.one_of(call.document, "keyName", *KEYS)
        if key_name is None:
            raise invalid("The property 'keyName' is missing.")
        new_key = {key_name: _fresh_key(self._rng)}
        return _keys(
            await self._update(
                existing, lambda record: replace(record, attributes={**record.attributes, **new_key})
            )
        )

    # ---- where the resources are -------------------------------------------------------------------------------

    @abstractmethod
    async def _get(self, resource: ArmId) -> R | None:
        """The record of a resource; raises AzureError where what it would be in does not exist."""

    @abstractmethod
    def _new(self, resource: ArmId, attributes: Mapping[str, str], now: int) -> R:
        """A record that is not written yet."""

    @abstractmethod
    async def _put(self, call: ArmCall, resource: ArmId, accept: Accept[R]) -> tuple[R, bool]:
        """Write what `accept` makes; the record, and whether it is new."""

    @abstractmethod
    async def _update(self, record: R, change: Callable[[R], R]) -> R:
        """Change a record; raises NotFound where it does not exist any more."""

    @abstractmethod
    async def _remove(self, resource: ArmId) -> None:
        """Remove a resource, if it exists, with all that is in it."""

    @abstractmethod
    async def _find(self, call: ArmCall, after: str, limit: int) -> Sequence[R]:
        """Records by key, beginning after a key, of the group, Azure subscription or resource of a call."""

    def _lists(self, record: R) -> bool:  # noqa: ARG002 - for those that find others too
        """True if a record that was found is of this type."""
        return True

    # ---- what the operations share -----------------------------------------------------------------------------

    def _write_answer(self, call: ArmCall, record: R, state: str, status: HTTPStatus) -> Response:
        document = body_of(self._spec, record, call.base_url)
        in_steps = self._spec.in_steps(document["properties"])
        return json_answer(in_progress(document, state) if in_steps else document, status)

    def _resource(self, call: ArmCall) -> ArmId:
        return call.resource(PROVIDER, *self._spec.types)

    async def _get_existing(self, call: ArmCall) -> R:
        """The resource that the call's path names; raises AzureError if there is none."""
        resource = self._resource(call)
        record = await self._get(resource)
        if record is None:
            raise no_such(resource)
        return record

    def _create(self, resource: ArmId, now: int) -> R:
        keys = {name: _fresh_key(self._rng) for name in KEYS} if self._spec.has_keys else {}
        return self._new(resource, {ID: resource.text, **keys}, now)


def _keys(record: R) -> Response:
    return json_answer({name: record.attributes[name] for name in KEYS})


def _fresh_key(rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(_KEY_BYTES)).decode()
