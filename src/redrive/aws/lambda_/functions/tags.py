"""Tags of functions and of event source mappings."""

from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import denied, invalid, no_such
from redrive.aws.lambda_.documents.lookup import Lookup, function_in
from redrive.aws.lambda_.documents.records import FUNCTION, MAPPING, EventSourceMapping
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import id_text

_MAPPING: Final = ":event-source-mapping:"
_CAPACITY: Final = ":capacity-provider:"
TAGS: Final = Tagging(
    too_many=lambda: invalid("Number of tags exceeds resource tag limit."),
    reserved=lambda _: invalid("aws: prefixed tag key names are not allowed for external use."),
    pair=(),
    list="ListTags",
)


class FunctionTags:
    """Functions and mappings, as `Tagging` labels them."""

    def __init__(self, engine: Engine, lookup: Lookup) -> None:
        self._resources = engine.resources
        self._runtime = engine.runtime
        self._lookup = lookup

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the function that a request names; raises AwsError if there is none."""
        arn: str = request.params["Resource"]
        if _MAPPING in arn:
            mapping = await self._resources.documents.get(MAPPING, _key(request.call, arn, request.operation))
            return _existing_mapping(mapping, arn).tags
        return (await self._lookup.function(request.call, _function(arn), request.operation)).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the function that a request names; raises AwsError if there is none."""
        arn: str = request.params["Resource"]
        if request.params.get("Tags") == {}:
            raise invalid("An error occurred and the request cannot be processed.")
        revision = id_text(self._runtime.message_id())

        async def of_mapping(draft: Draft) -> None:
            stored_mapping = await draft.get(MAPPING, _key(request.call, arn, request.operation))
            mapping = _existing_mapping(stored_mapping, arn)
            draft.put(MAPPING, mapping.key, replace(mapping, tags=change(mapping.tags)))

        async def of_function(draft: Draft) -> None:
            function = await function_in(draft, _function(arn))
            latest = replace(function.latest, revision=revision)
            function_after = replace(function, latest=latest, tags=change(function.tags))
            draft.put(FUNCTION, function.name.key, function_after)

        if _MAPPING in arn:
            await self._resources.write(of_mapping)
            return
        await self._lookup.function(request.call, _function(arn), request.operation)
        await self._resources.write(of_function)


def _function(arn: str) -> names.FunctionReference:
    """The function that an ARN names, without a qualifier; raises AwsError."""
    if _CAPACITY in arn:
        raise no_such(f"Capacity provider not found: {arn}")
    reference = names.of_arn(arn)
    if reference is None or reference.qualifier is not None:
        raise invalid(
            "Tags on function aliases and versions are not supported. Please specify a function ARN."
        )
    return reference


def _key(call: Call, arn: str, action: str) -> str:
    """The key of a mapping, which is its account's alone: mappings have no policies."""
    region, account, _, mapping_id = arn.split(":")[3:7]
    # Policies are asked about the one partition that is served, whatever the caller names.
    own_arn = f"arn:aws:lambda:{region}:{account}{_MAPPING}{mapping_id}"
    if not call.may(f"lambda:{action}", own_arn, account, policy=None):
        raise denied(call.principal.name, action, own_arn)
    return f"{account}/{region}/{mapping_id}"


def _existing_mapping(mapping: EventSourceMapping | None, arn: str) -> EventSourceMapping:
    if mapping is None:
        raise no_such(f"Event source mapping not found: {arn}")
    return mapping
