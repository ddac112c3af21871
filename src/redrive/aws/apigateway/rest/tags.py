"""Tags of APIs, stages, keys and plans, which callers name by ARN, and the settings of an account's region."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request, not_found
from redrive.aws.apigateway.control.records import (
    ACCOUNT,
    API_KEY,
    REST_API,
    STAGES,
    USAGE_PLAN,
    GatewayAccount,
    api_key,
    value_at,
    with_value,
)
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft

TAGS: Final = Tagging(
    too_many=lambda: bad_request("A resource has at most 50 tags"),
    pair=(),
    list="GetTags",
    tags_parameter="tags",
    keys="tagKeys",
    listed="tags",
)
_ARN_PARTS: Final = 6
_KINDS: Final[Mapping[str, DocumentKind[Any]]] = {
    "restapis": REST_API,
    "apikeys": API_KEY,
    "usageplans": USAGE_PLAN,
}
_OF_STAGE: Final = 4  # `restapis`, the API, `stages`, the stage


class ApiTags:
    """APIs, stages, keys and plans, as `Tagging` labels them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the part of API Gateway that a request names; raises AwsError if there is none."""
        kind, document_id, stage = _document_of(request.params["resourceArn"])
        document = await self._engine.resources.documents.get(
            kind, api_key(request.call.account, request.call.region, document_id)
        )
        if document is None:
            raise _absent()
        if not stage:
            tags: Tags = document.tags
            return tags
        stage_tree = value_at(document.tree, [STAGES, stage])
        if stage_tree is None:
            raise _absent()
        return stage_tree.get("tags") or {}

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the part of API Gateway that a request names; raises AwsError if there is none."""
        kind, document_id, stage = _document_of(request.params["resourceArn"])
        key = api_key(request.call.account, request.call.region, document_id)

        async def decide(draft: Draft) -> None:
            document = await draft.get(kind, key)
            if document is None:
                raise _absent()
            if not stage:
                draft.put(kind, key, replace(document, tags=change(document.tags)))
                return
            stage_tree = value_at(document.tree, [STAGES, stage])
            if stage_tree is None:
                raise _absent()
            tags = change(stage_tree.get("tags") or {})
            tree = with_value(document.tree, [STAGES, stage, "tags"], tags)
            draft.put(kind, key, replace(document, tree=tree))

        await self._engine.resources.write(decide)


def _document_of(arn: str) -> tuple[DocumentKind[Any], str, str]:
    """The kind of document that an ARN names, its id, and the stage in it; empty: the document itself."""
    parts = arn.split(":", _ARN_PARTS - 1)
    words = parts[-1].strip("/").split("/")
    is_stage = len(words) == _OF_STAGE and words[0] == "restapis" and words[2] == "stages"
    if len(parts) < _ARN_PARTS or len(words) not in (2, _OF_STAGE) or words[0] not in _KINDS:
        raise bad_request(f"Invalid ARN specified in the request: {arn}")
    if len(words) == _OF_STAGE and not is_stage:
        raise bad_request(f"Invalid ARN specified in the request: {arn}")
    return _KINDS[words[0]], words[1], words[3] if is_stage else ""


def _absent() -> Exception:
    return not_found("Invalid resource identifier specified")


_ROLE: Final = "/cloudwatchRoleArn"
_THROTTLE: Final = {"burstLimit": 5000, "rateLimit": 10000.0}


class GatewayAccountOperations:
    """Shows and changes the settings of an account's region."""

    def __init__(self, engine: Engine, roles: ServiceRoles) -> None:
        """Store them in this engine; these roles may write logs."""
        self._roles = roles
        self._documents = engine.resources.documents

    async def get_account(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - it has none
        return _as_structure(await self._documents.get(ACCOUNT, _key(call)) or GatewayAccount())

    async def update_account(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_UpdateAccount.html: the role that logs are written by."""

        def change(account: GatewayAccount) -> GatewayAccount:
            for operation in params.get("patchOperations") or ():
                if operation.get("path") != _ROLE:
                    raise bad_request(f"Invalid patch path {operation.get('path')}")
                value = operation.get("value") or ""
                account = GatewayAccount("" if operation.get("op") == "remove" else value)
            return account

        default = change(GatewayAccount())
        if default.role:
            await self._roles.check(call, default.role)
        updated_account = await self._documents.update_or_create(ACCOUNT, _key(call), default, change)
        return _as_structure(updated_account)


def _key(call: Call) -> str:
    return f"{call.account}/{call.region}"


def _as_structure(account: GatewayAccount) -> Structure:
    return {
        "cloudwatchRoleArn": account.role or None,
        "throttleSettings": dict(_THROTTLE),
        "features": ["UsagePlans"],
        "apiKeyVersion": "4",
    }
