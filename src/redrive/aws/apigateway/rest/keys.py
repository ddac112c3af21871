"""API keys, which callers of some methods have to show."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.control.errors import PAGES, bad_request, conflict, not_found, unoffered
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
from redrive.aws.apigateway.rest.kinds import PatchRules, patched, shape_of
from redrive.aws.apigateway.rest.tags import TAGS
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

_NAME_CHARS_MAX: Final = 1024
_DESCRIPTION_CHARS_MAX: Final = 125_000
_VALUE_CHARS_MIN, _VALUE_CHARS_MAX = 20, 128
_GIVEN: Final = ("name", "description", "enabled", "customerId")
_REPLACED: Final = ("/description", "/enabled", "/name", "/customerId")
_RULES: Final = PatchRules(frozenset(_GIVEN), replaced=_REPLACED, lists_paths=True)
_MISSING: Final = "Invalid API Key identifier specified"


class ApiKeyOperations:
    """Makes, shows, changes and deletes keys."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._documents = engine.resources.documents
        self._rng = engine.runtime.rng

    async def create_api_key(self, call: Call, params: Structure) -> Structure:
        if params.get("stageKeys"):
            raise unoffered("stageKeys; a usage plan says what a key is for")
        value = params.get("value") or new_id(self._rng, KEY_CHARS)
        if not (
            _VALUE_CHARS_MIN <= len(value) <= _VALUE_CHARS_MAX and value.isascii() and value.isprintable()
        ):
            if len(value) > _VALUE_CHARS_MAX:
                raise bad_request(f"API Key value exceeds maximum size of {_VALUE_CHARS_MAX} characters")
            raise bad_request(f"API Key value should be at least {_VALUE_CHARS_MIN} characters")
        _check_texts(params)
        tags = TAGS.read(params.get("tags"))
        settings = {
            "enabled": False,
            **{name: params[name] for name in _GIVEN if params.get(name) is not None},
        }
        key_id = new_id(self._rng, API_CHARS)
        key = ApiKey(call.account, call.region, key_id, value, call.now, call.now, settings, tags=tags)
        at, value_at = api_key(call.account, call.region, key_id), api_key(call.account, call.region, value)

        async def decide(draft: Draft) -> None:
            if await draft.get(KEY_VALUE, value_at) is not None:
                raise conflict("API Key already exists")
            draft.put(KEY_VALUE, value_at, KeyValue(key_id))
            draft.put(API_KEY, at, key)

        await self._engine.resources.write(decide)
        return as_structure(key, whole=True)

    async def get_api_key(self, call: Call, params: Structure) -> Structure:
        key = await self._documents.get(API_KEY, api_key(call.account, call.region, params["apiKey"]))
        return as_structure(_standing(key), whole=bool(params.get("includeValue")))

    async def get_api_keys(self, call: Call, params: Structure) -> Structure:
        if (params.get("limit") or 1) < 0:  # which is not a refusal of this list (recorded)
            return {"items": []}
        keys = await self._documents.find(API_KEY, api_key(call.account, call.region, ""))
        beginning, customer = params.get("nameQuery") or "", params.get("customerId")
        items = [
            key
            for key in keys
            if str(key.settings.get("name", "")).startswith(beginning)
            and customer in (None, key.settings.get("customerId"))
        ]
        whole = bool(params.get("includeValues"))
        return PAGES.of("GetApiKeys", params, items, lambda key: as_structure(key, whole=whole))

    async def update_api_key(self, call: Call, params: Structure) -> Structure:
        operations = params.get("patchOperations") or ()

        def change(key: ApiKey) -> ApiKey:
            settings = patched(dict(key.settings), shape_of("GetApiKey"), _RULES, operations)
            _check_texts(settings)
            return replace(key, settings=settings, updated_at=call.now)

        at = api_key(call.account, call.region, params["apiKey"])

        async def decide(draft: Draft) -> ApiKey:
            return draft.change(API_KEY, at, await _key_in(draft, at), change)

        key = await self._engine.resources.write(decide)
        return {**as_structure(key), "tags": dict(key.tags)}  # empty, too (recorded)

    async def delete_api_key(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteApiKey.html; its plans forget it."""
        at = api_key(call.account, call.region, params["apiKey"])

        async def decide(draft: Draft) -> None:
            key = await _key_in(draft, at)
            for plan_id in key.plans:
                plan_at = api_key(call.account, call.region, plan_id)
                plan = await draft.get(USAGE_PLAN, plan_at)
                if plan is not None:
                    remaining = tuple(each for each in plan.keys if each != key.id)
                    draft.put(USAGE_PLAN, plan_at, replace(plan, keys=remaining))
            draft.remove(API_KEY, at)
            draft.remove(KEY_VALUE, api_key(call.account, call.region, key.value))

        await self._engine.resources.write(decide)
        return {}


def _check_texts(settings: Mapping[str, Any]) -> None:
    """Refuse a name or a description that is too long."""
    if len(settings.get("name") or "") > _NAME_CHARS_MAX:
        raise bad_request(f"Invalid API Key name, can be at most {_NAME_CHARS_MAX} characters.")
    if len(settings.get("description") or "") > _DESCRIPTION_CHARS_MAX:
        raise bad_request("Invalid API Key description specified.")


async def _key_in(draft: Draft, at: str) -> ApiKey:
    key = await draft.get(API_KEY, at)
    return _standing(key)


def _standing(api_key: ApiKey | None) -> ApiKey:
    if api_key is None:
        raise not_found(_MISSING)
    return api_key


def as_structure(key: ApiKey, *, whole: bool = False) -> Structure:
    """A key as callers see it; its value only where they ask for it."""
    value: Mapping[str, Any] = {"value": key.value} if whole else {}
    return {
        "id": key.id,
        **value,
        **key.settings,
        "createdDate": key.created_at,
        "lastUpdatedDate": key.updated_at,
        "stageKeys": [],
        "tags": dict(key.tags) or None,
    }
