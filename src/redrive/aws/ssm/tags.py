"""Tags of parameters, which deployment tools read of each parameter that they keep."""

from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.ssm.errors import error
from redrive.aws.ssm.records import PARAMETER, parameter_key, plain_name
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.errors import NotFound

_PARAMETER: Final = "Parameter"
TAGS: Final = Tagging(
    too_many=lambda: error("TooManyTagsError", "A parameter has at most 50 tags."),
    add="AddTagsToResource",
    remove="RemoveTagsFromResource",
    listed="TagList",
)


class ParameterTags:
    """Parameters, as `Tagging` labels them."""

    def __init__(self, engine: Engine) -> None:
        self._documents = engine.resources.documents

    async def tags(self, request: TagRequest) -> Tags:
        """See `Tagged.tags`."""
        parameter = await self._documents.get(PARAMETER, _key(request.call, request.params))
        if parameter is None:
            raise _absent(request.params)
        return parameter.tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """See `Tagged.retag`."""
        try:
            await self._documents.update(
                PARAMETER,
                _key(request.call, request.params),
                lambda current: replace(current, tags=change(current.tags)),
            )
        except NotFound:
            raise _absent(request.params) from None


def _key(call: Call, params: Structure) -> str:
    if params["ResourceType"] != _PARAMETER:
        raise error("InvalidResourceType", "The resource type is not valid.")
    return parameter_key(call.account, call.region, plain_name(params["ResourceId"]))


def _absent(params: Structure) -> Exception:
    return error("InvalidResourceId", f'The resource ID "{params["ResourceId"]}" is not valid.')
