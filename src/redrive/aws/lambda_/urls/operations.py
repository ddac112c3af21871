"""Function URLs: addresses at which functions are asked by HTTP."""

import hashlib
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import PAGES, conflict, denied, error, no_such
from redrive.aws.lambda_.documents.lookup import check
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference, arn_of, is_version
from redrive.aws.lambda_.documents.records import (
    ALIAS,
    FUNCTION,
    FUNCTION_URL,
    FunctionRecord,
    FunctionUrl,
    UrlPlace,
    qualified_key,
    url_text,
    without_url_in,
)
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.timestamps import to_offset_iso8601
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

_NO_FUNCTION: Final = "Function does not exist"
_NOTHING: Final = "The resource you requested does not exist."
_ID_BYTES: Final = 20  # 32 characters of base 32


class UrlOperations:
    """Creates, shows, changes and deletes the URLs of functions and aliases."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def create_function_url_config(self, call: Call, params: Structure) -> Structure:
        reference = _read(call, params)
        url = replace(
            FunctionUrl(self._new_id(), params["AuthType"], call.now, call.now), **_settings(params)
        )

        async def decide(draft: Draft) -> None:
            function = await _function_in(draft, call, reference, "CreateFunctionUrlConfig", _NO_FUNCTION)
            qualifier = reference.qualifier
            await _check_alias_in(draft, reference)
            if (qualifier or "") in function.urls:
                raise conflict(
                    f"Failed to create function url config for [functionArn = {reference.arn}]. Error message:  "
                    "FunctionUrlConfig exists for this Lambda function"
                )
            _put_in(draft, function, qualifier or "", url)
            draft.put(FUNCTION_URL, url.id, UrlPlace(reference.name, qualifier or ""))

        await self._engine.resources.write(decide)
        answer = _answer_of(_as_structure(call, reference, url), params)
        del answer["LastModifiedTime"]
        return answer

    async def get_function_url_config(self, call: Call, params: Structure) -> Structure:
        reference = _read(call, params)
        function = await self._function(call, reference, "GetFunctionUrlConfig", _NOTHING)
        return _as_structure(call, reference, _existing_url(function, reference))

    async def update_function_url_config(self, call: Call, params: Structure) -> Structure:
        reference = _read(call, params)

        async def decide(draft: Draft) -> FunctionUrl:
            function = await _function_in(draft, call, reference, "UpdateFunctionUrlConfig", _NO_FUNCTION)
            await _check_alias_in(draft, reference)
            url = replace(_existing_url(function, reference), modified_at=call.now, **_settings(params))
            _put_in(draft, function, reference.qualifier or "", url)
            return url

        return _answer_of(_as_structure(call, reference, await self._engine.resources.write(decide)), params)

    async def delete_function_url_config(self, call: Call, params: Structure) -> Structure:
        reference = _read(call, params)

        async def decide(draft: Draft) -> None:
            function = await _function_in(draft, call, reference, "DeleteFunctionUrlConfig", _NOTHING)
            _existing_url(function, reference)
            draft.put(FUNCTION, function.name.key, without_url_in(draft, function, reference.qualifier or ""))

        await self._engine.resources.write(decide)
        return {}

    async def list_function_url_configs(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_ListFunctionUrlConfigs.html; of all its aliases."""
        reference = names.read(call, params["FunctionName"])._replace(qualifier=None)
        function = await self._function(call, reference, "ListFunctionUrlConfigs", _NO_FUNCTION)

        def show(pair: tuple[str, FunctionUrl]) -> Structure:
            qualifier, url = pair
            return _as_structure(call, FunctionReference(function.name, qualifier or None), url)

        return PAGES.of("ListFunctionUrlConfigs", params, sorted(function.urls.items(), key=_key), show, _key)

    async def _function(
        self, call: Call, reference: FunctionReference, action: str, missing_text: str
    ) -> FunctionRecord:
        function = await self._engine.resources.documents.get(FUNCTION, reference.name.key)
        return _check_access(call, reference, action, missing_text, function)

    def _new_id(self) -> str:
        digest = hashlib.sha256(self._engine.runtime.message_id()).digest()
        return b32encode(digest[:_ID_BYTES]).decode().lower()


def _read(call: Call, params: Structure) -> FunctionReference:
    """The function and the alias that a request names; raises AwsError."""
    reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
    qualifier = reference.qualifier
    if qualifier is not None and (qualifier == LATEST or is_version(qualifier)):
        raise error(
            "ValidationException",
            f"1 validation error detected: Value '{qualifier}' at 'qualifier' failed to satisfy constraint: Member must"
            r" satisfy regular expression pattern: ((?!^\d+$)^[0-9a-zA-Z-_]+$)",
        )
    return reference


def _settings(params: Structure) -> dict[str, Any]:
    fields = {"auth": "AuthType", "cors": "Cors", "mode": "InvokeMode"}
    return {field: params[name] for field, name in fields.items() if name in params}


async def _function_in(
    draft: Draft, call: Call, reference: FunctionReference, action: str, missing_text: str
) -> FunctionRecord:
    function = await draft.get(FUNCTION, reference.name.key)
    return _check_access(call, reference, action, missing_text, function)


async def _check_alias_in(draft: Draft, reference: FunctionReference) -> None:
    qualifier = reference.qualifier
    if qualifier and await draft.get(ALIAS, qualified_key(reference.name, qualifier)) is None:
        raise no_such(_NO_FUNCTION)


def _check_access(
    call: Call, reference: FunctionReference, action: str, missing_text: str, function: FunctionRecord | None
) -> FunctionRecord:
    if function is None and reference.name.account != call.account:
        raise denied(call.principal.name, action, reference.arn)  # nobody learns what another account has
    if function is None:
        raise no_such(missing_text)
    check(call, function, reference, action)
    return function


def _existing_url(function: FunctionRecord, reference: FunctionReference) -> FunctionUrl:
    url = function.urls.get(reference.qualifier or "")
    if url is None:
        raise no_such()
    return url


def _put_in(draft: Draft, function: FunctionRecord, qualifier: str, url: FunctionUrl) -> None:
    draft.put(FUNCTION, function.name.key, replace(function, urls={**function.urls, qualifier: url}))


def _key(pair: tuple[str, FunctionUrl]) -> str:
    return f"/{pair[0]}"


def _answer_of(description: Structure, params: Structure) -> Structure:
    """A URL as its creation or change answers it: the mode only where the request has it (recorded)."""
    return {name: value for name, value in description.items() if name != "InvokeMode" or name in params}


def _as_structure(call: Call, reference: FunctionReference, url: FunctionUrl) -> Structure:
    cors: Mapping[str, Any] | None = url.cors
    description: Structure = {
        "FunctionUrl": url_text(call.base_url, url.id, reference.name.region),
        "FunctionArn": arn_of(reference.name, reference.qualifier),
        "AuthType": url.auth,
        "CreationTime": to_offset_iso8601(url.created_at),
        "LastModifiedTime": to_offset_iso8601(url.modified_at),
        "InvokeMode": url.mode,
    }
    if cors is not None:
        description["Cors"] = dict(cors)
    return description
