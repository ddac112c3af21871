"""Tags of functions and of event source mappings."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import denied, invalid, no_such
from redrive.aws.lambda_.documents.lookup import Lookup, function_in
from redrive.aws.lambda_.documents.mapping import MAPPING, EventSourceMapping
from redrive.aws.lambda_.documents.records import FUNCTION
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

TAGS_MAX: Final = 50
_RESERVED: Final = "aws:"
_MAPPING: Final = ":event-source-mapping:"


class FunctionTagOperations:
    """Labels functions and mappings."""

    def __init__(self, engine: Engine, lookup: Lookup) -> None:
        self._engine = engine
        self._lookup = lookup

    async def tag_resource(self, call: Call, params: Structure) -> Structure:
        await self._change(call, params["Resource"], "TagResource", params["Tags"], ())
        return {}

    async def untag_resource(self, call: Call, params: Structure) -> Structure:
        await self._change(call, params["Resource"], "UntagResource", {}, params["TagKeys"])
        return {}

    async def list_tags(self, call: Call, params: Structure) -> Structure:
        arn: str = params["Resource"]
        if _MAPPING in arn:
            mapping = await self._engine.resources.documents.get(MAPPING, _key(call, arn, "ListTags"))
            return {"Tags": dict(_standing(mapping).tags)}
        function = await self._lookup.function(call, _function(arn), "ListTags")
        return {"Tags": dict(function.tags)}

    async def _change(
        self, call: Call, arn: str, action: str, given: Mapping[str, str], tag_keys: Collection[str]
    ) -> None:
        async def of_mapping(draft: Draft) -> None:
            found = await draft.get(MAPPING, _key(call, arn, action))
            mapping = _standing(found)
            draft.put(MAPPING, mapping.key, replace(mapping, tags=_merged(mapping.tags, given, tag_keys)))

        async def of_function(draft: Draft) -> None:
            function = await function_in(draft, _function(arn))
            tags = _merged(function.tags, given, tag_keys)
            draft.put(FUNCTION, function.name.key, replace(function, tags=tags))

        if _MAPPING in arn:
            await self._engine.resources.write(of_mapping)
            return
        await self._lookup.function(call, _function(arn), action)
        await self._engine.resources.write(of_function)


def _merged(before: Mapping[str, str], given: Mapping[str, str], tag_keys: Collection[str]) -> dict[str, str]:
    tags = {key: value for key, value in {**before, **given}.items() if key not in tag_keys}
    check(tags)
    return tags


def _function(arn: str) -> names.FunctionReference:
    reference = names.of_arn(arn)
    if reference is None or reference.qualifier is not None:
        raise invalid(
            "Tags on function aliases and versions are not supported. Please specify a function ARN."
        )
    return reference


def _key(call: Call, arn: str, action: str) -> str:
    """The key of a mapping, which is its account's alone: mappings have no policies."""
    region, account, _, mapping_id = arn.split(":")[3:7]
    if not call.may(f"lambda:{action}", arn, account, None):
        raise denied(call.principal.name, action, arn)
    return f"{account}/{region}/{mapping_id}"


def _standing(mapping: EventSourceMapping | None) -> EventSourceMapping:
    if mapping is None:
        raise no_such()
    return mapping


def check(tags: Mapping[str, str]) -> None:
    """Refuse more tags than a resource may have, and those of Amazon's own.

    Raises:
        AwsError: `InvalidParameterValueException`.
    """
    if len(tags) > TAGS_MAX:
        raise invalid("Number of tags exceeds resource tag limit.")
    if any(key.lower().startswith(_RESERVED) for key in tags):
        raise invalid("aws: prefixed tag key names are not allowed for external use.")
