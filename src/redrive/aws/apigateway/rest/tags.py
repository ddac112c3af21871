"""Tags of APIs, stages, keys and plans, which callers name by ARN."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request, not_found
from redrive.aws.apigateway.control.records import API_KEY, REST_API, USAGE_PLAN, api_key
from redrive.aws.apigateway.rest.kinds import STAGES
from redrive.aws.apigateway.rest.trees import found, with_value
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft

TAGS_MAX: Final = 50
_ARN_PARTS: Final = 6
_KINDS: Final[Mapping[str, DocumentKind[Any]]] = {
    "restapis": REST_API,
    "apikeys": API_KEY,
    "usageplans": USAGE_PLAN,
}
_OF_STAGE: Final = 4  # `restapis`, the API, `stages`, the stage


class ApiTagOperations:
    """Labels what callers have."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def tag_resource(self, call: Call, params: Structure) -> Structure:
        given = params["tags"]
        await self._change(call, params["resourceArn"], lambda tags: {**tags, **given})
        return {}

    async def untag_resource(self, call: Call, params: Structure) -> Structure:
        tag_keys: Collection[str] = params["tagKeys"]
        await self._change(
            call,
            params["resourceArn"],
            lambda tags: {key: value for key, value in tags.items() if key not in tag_keys},
        )
        return {}

    async def get_tags(self, call: Call, params: Structure) -> Structure:
        kind, document_id, stage = _named(params["resourceArn"])
        document = await self._engine.resources.documents.get(
            kind, api_key(call.account, call.region, document_id)
        )
        if document is None:
            raise _absent()
        if not stage:
            return {"tags": dict(document.tags)}
        stage_tree = found(document.tree, [STAGES, stage])
        if stage_tree is None:
            raise _absent()
        return {"tags": dict(stage_tree.get("tags") or {})}

    async def _change(
        self, call: Call, arn: str, change: Callable[[Mapping[str, str]], dict[str, str]]
    ) -> None:
        kind, document_id, stage = _named(arn)
        key = api_key(call.account, call.region, document_id)

        async def decide(draft: Draft) -> None:
            document = await draft.get(kind, key)
            subtree = document
            if document is not None and stage:
                subtree = found(document.tree, [STAGES, stage])
            if document is None or subtree is None:
                raise _absent()
            if stage:
                tags = change(subtree.get("tags") or {})
                tree = with_value(document.tree, [STAGES, stage, "tags"], tags)
                changed = replace(document, tree=tree)
            else:
                tags = change(document.tags)
                changed = replace(document, tags=tags)
            check_tags(tags)
            draft.put(kind, key, changed)

        await self._engine.resources.write(decide)


def _named(arn: str) -> tuple[DocumentKind[Any], str, str]:
    """The kind of document that an ARN names, its id, and the stage in it; empty: the whole."""
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


def check_tags(tags: Mapping[str, str]) -> None:
    """Refuse more tags than there may be.

    Raises:
        AwsError: `BadRequestException`.
    """
    if len(tags) > TAGS_MAX:
        raise bad_request(f"A resource has at most {TAGS_MAX} tags")
