"""API keys, which callers of some methods have to show."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.control.errors import PAGES, bad_request, conflict, not_found, not_offered
from redrive.aws.apigateway.control.records import (
    API_CHARS,
    API_KEY,
    KEY_CHARS,
    KEY_VALUE,
    USAGE_PLAN,
    ApiKey,
    KeyValue,
    api_key,
    new_id,
)
from redrive.aws.apigateway.rest.kinds import PatchRules, apply_patches, shape_of
from redrive.aws.apigateway.rest.tags import TAGS
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

_NAME_CHARS_MAX: Final = 1024
_DESCRIPTION_CHARS_MAX: Final = 125_000
_VALUE_CHARS_MIN, _VALUE_CHARS_MAX = 20, 128
_MEMBERS: Final = ("name", "description", "enabled", "customerId")
_REPLACED: Final = ("/description", "/enabled", "/name", "/customerId")
_RULES: Final = PatchRules(frozenset(_MEMBERS), replace_only=_REPLACED, lists_paths=True)
_NOT_FOUND: Final = "Invalid API Key identifier specified"


class ApiKeyOperations:
    """Makes, shows, changes and deletes keys."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._documents = engine.resources.documents
        self._rng = engine.runtime.rng

    async def create_api_key(self, call: Call, params: Structure) -> Structure:
        if params.get("stageKeys"):
            raise not_offered("stageKeys; a usage plan says what a key is for")
        value = params.get("value") or new_id(self._rng, KEY_CHARS)
        if len(value) > _VALUE_CHARS_MAX:
            raise bad_request(f"API Key value exceeds maximum size of {_VALUE_CHARS_MAX} characters")
        if len(value) < _VALUE_CHARS_MIN or not (value.isascii() and value.isprintable()):
            raise bad_request(f"API Key value should be at least {_VALUE_CHARS_MIN} characters")
        _check_texts(params)
        tags = TAGS.read(params.get("tags"))
        settings = {
            "enabled": False,
            **{name: params[name] for name in _MEMBERS if params.get(name) is not None},
        }
        key_id = new_id(self._rng, API_CHARS)
        key = ApiKey(call.account, call.region, key_id, value, call.now, call.now, settings, tags=tags)
        document_key = api_key(call.account, call.region, key_id)
        value_key = api_key(call.account, call.region, value)

        async def decide(draft: Draft) -> None:
            if await draft.get(KEY_VALUE, value_key) is not None:
                raise conflict("API Key already exists")
            draft.put(KEY_VALUE, value_key, KeyValue(key_id))
            draft.put(API_KEY, document_key, key)

        await self._engine.resources.write(decide)
        return as_structure(key, with_value=True)

    async def get_api_key(self, call: Call, params: Structure) -> Structure:
        key = await self._documents.get(API_KEY, api_key(call.account, call.region, params["apiKey"]))
        return as_structure(_require(key), with_value=bool(params.get("includeValue")))

    async def get_api_keys(self, call: Call, params: Structure) -> Structure:
        if (params.get("limit") or 1) < 0:  # which this list does not refuse (recorded)
            return {"items": []}
        keys = await self._documents.find(API_KEY, api_key(call.account, call.region, ""))
        prefix, customer = params.get("nameQuery") or "", params.get("customerId")
        items = [
            key
            for key in keys
            if str(key.settings.get("name", "")).startswith(prefix)
            and customer in (None, key.settings.get("customerId"))
        ]
        with_value = bool(params.get("includeValues"))
        return PAGES.of("GetApiKeys", params, items, lambda key: as_structure(key, with_value=with_value))

    async def update_api_key(self, call: Call, params: Structure) -> Structure:
        operations = params.get("patchOperations") or ()

        def change(key: ApiKey) -> ApiKey:
            settings = apply_patches(dict(key.settings), shape_of("GetApiKey"), _RULES, operations)
            _check_texts(settings)
            return replace(key, settings=settings, updated_at=call.now)

        document_key = api_key(call.account, call.region, params["apiKey"])

        async def decide(draft: Draft) -> ApiKey:
            return draft.change(API_KEY, document_key, await key_in(draft, document_key), change)

        key = await self._engine.resources.write(decide)
        return {**as_structure(key), "tags": dict(key.tags)}  # empty, too (recorded)

    async def delete_api_key(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteApiKey.html; its plans forget it."""
        document_key = api_key(call.account, call.region, params["apiKey"])

        async def decide(draft: Draft) -> None:
            key = await key_in(draft, document_key)
            for plan_id in key.plans:
                plan_key = api_key(call.account, call.region, plan_id)
                plan = await draft.get(USAGE_PLAN, plan_key)
                if plan is not None:
                    remaining = tuple(each for each in plan.keys if each != key.id)
                    draft.put(USAGE_PLAN, plan_key, replace(plan, keys=remaining))
            draft.remove(API_KEY, document_key)
            draft.remove(KEY_VALUE, api_key(call.account, call.region, key.value))

        await self._engine.resources.write(decide)
        return {}


def _check_texts(settings: Mapping[str, Any]) -> None:
    """Refuse a name or a description that is too long."""
    if len(settings.get("name") or "") > _NAME_CHARS_MAX:
        raise bad_request(f"Invalid API Key name, can be at most {_NAME_CHARS_MAX} characters.")
    if len(settings.get("description") or "") > _DESCRIPTION_CHARS_MAX:
        raise bad_request("Invalid API Key description specified.")


async def key_in(draft: Draft, document_key: str) -> ApiKey:
    """An API key; raises AwsError if it does not exist."""
    key = await draft.get(API_KEY, document_key)
    return _require(key)


def _require(api_key: ApiKey | None) -> ApiKey:
    if api_key is None:
        raise not_found(_NOT_FOUND)
    return api_key


def as_structure(key: ApiKey, *, with_value: bool = False) -> Structure:
    """A key as callers see it, with or without its value."""
    value: Mapping[str, Any] = {"value": key.value} if with_value else {}
    return {
        "id": key.id,
        **value,
        **key.settings,
        "createdDate": key.created_at,
        "lastUpdatedDate": key.updated_at,
        "stageKeys": [],
        "tags": dict(key.tags) or None,
    }
