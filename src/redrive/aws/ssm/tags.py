"""Tags of parameters, which deployment tools read of each parameter that they keep."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.ssm.errors import error
from redrive.aws.ssm.parameters import plain_name
from redrive.aws.ssm.records import PARAMETER, Parameter, parameter_key
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.errors import NotFound

TAGS_MAX: Final = 50
_PARAMETER: Final = "Parameter"

Tags = Mapping[str, str]


class ParameterTags:
    """Labels parameters."""

    def __init__(self, engine: Engine) -> None:
        self._documents = engine.resources.documents

    async def add_tags_to_resource(self, call: Call, params: Structure) -> Structure:
        given = {tag["Key"]: tag["Value"] for tag in params["Tags"]}
        return await self._change(call, params, lambda tags: {**tags, **given})

    async def remove_tags_from_resource(self, call: Call, params: Structure) -> Structure:
        taken = set(params["TagKeys"])
        return await self._change(call, params, lambda tags: {key: tags[key] for key in tags.keys() - taken})

    async def list_tags_for_resource(self, call: Call, params: Structure) -> Structure:
        parameter = await self._documents.get(PARAMETER, _key(call, params))
        if parameter is None:
            raise _absent(params)
        return {"TagList": [{"Key": key, "Value": value} for key, value in parameter.tags.items()]}

    async def _change(self, call: Call, params: Structure, change: Callable[[Tags], Tags]) -> Structure:
        def changed(current: Parameter) -> Parameter:
            tags = change(current.tags)
            if len(tags) > TAGS_MAX:
                raise error("TooManyTagsError", f"A parameter has at most {TAGS_MAX} tags.")
            return replace(current, tags=tags)

        try:
            await self._documents.update(PARAMETER, _key(call, params), changed)
        except NotFound:
            raise _absent(params) from None
        return {}


def _key(call: Call, params: Structure) -> str:
    if params["ResourceType"] != _PARAMETER:
        raise error("InvalidResourceType", "The resource type is not valid.")
    return parameter_key(call.account, call.region, plain_name(params["ResourceId"]))


def _absent(params: Structure) -> Exception:
    return error("InvalidResourceId", f'The resource ID "{params["ResourceId"]}" is not valid.')
