"""Tags of functions."""

from dataclasses import replace
from typing import Final

from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.protocols.aws.call import Call
from redrive.protocols.aws.lambda_ import names
from redrive.protocols.aws.lambda_.errors import invalid
from redrive.protocols.aws.lambda_.lookup import Lookup, function_in
from redrive.protocols.aws.lambda_.names import Named
from redrive.protocols.aws.lambda_.records import FUNCTION, FunctionRecord
from redrive.protocols.aws.wire.shapes import Structure

TAGS_MAX: Final = 50
_RESERVED: Final = "aws:"


class TagOperations:
    """Labels functions."""

    def __init__(self, engine: Engine, lookup: Lookup) -> None:
        """Do it through this engine."""
        self._engine = engine
        self._lookup = lookup

    async def tag_resource(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_TagResource.html."""
        named, _ = await self._found(call, params, "TagResource")
        await self._change(named, params["Tags"], ())
        return {}

    async def untag_resource(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_UntagResource.html."""
        named, _ = await self._found(call, params, "UntagResource")
        await self._change(named, {}, params["TagKeys"])
        return {}

    async def list_tags(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_ListTags.html."""
        _, function = await self._found(call, params, "ListTags")
        return {"Tags": dict(function.tags)}

    async def _found(self, call: Call, params: Structure, action: str) -> tuple[Named, FunctionRecord]:
        named = names.of_arn(params["Resource"])
        if named is None or named.qualifier is not None:
            raise invalid(
                "Tags on function aliases and versions are not supported. Please specify a function ARN."
            )
        return named, await self._lookup.function(call, named, action)

    async def _change(self, named: Named, given: dict[str, str], gone: list[str] | tuple[()]) -> None:
        async def decide(draft: Draft) -> None:
            function = await function_in(draft, named)
            tags = {key: value for key, value in {**function.tags, **given}.items() if key not in gone}
            check(tags)
            draft.put(FUNCTION, named.name.key, replace(function, tags=tags))

        await self._engine.resources.write(decide)


def check(tags: dict[str, str]) -> None:
    """Refuse more tags than a function may have, and those of Amazon's own.

    Raises:
        AwsError: `InvalidParameterValueException`.
    """
    if len(tags) > TAGS_MAX:
        raise invalid(f"The number of tags exceeds the limit of {TAGS_MAX}.")
    if any(key.lower().startswith(_RESERVED) for key in tags):
        raise invalid("aws: prefixed tag key names are not allowed for external use.")
