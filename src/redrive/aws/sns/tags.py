"""Tags of topics, the only resources here that have any."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from redrive.aws.kit.call import Call
from redrive.aws.sns.access import topic_at
from redrive.aws.sns.errors import error, invalid
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.topic import Topic

TAGS_MAX: Final = 50
_RESERVED: Final = "aws:"  # in whatever case: for AWS's own services


def read(listed: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Tags by their keys.

    Raises:
        AwsError: A key stands twice or is AWS's own, or there are too many.
    """
    tags = {tag["Key"]: tag["Value"] for tag in listed}
    if len(tags) < len(listed):
        raise invalid("Duplicated keys are not allowed.")
    if any(key.lower().startswith(_RESERVED) for key in tags):
        raise invalid("Tags Reason: aws: prefixed tag key names are not allowed for external use.")
    check_number(tags)
    return tags


def check_number(tags: Mapping[str, str]) -> None:
    """Refuse more tags than a resource may have.

    Raises:
        AwsError: `TagLimitExceeded`.
    """
    if len(tags) > TAGS_MAX:
        raise error("TagLimitExceeded", "Could not complete request: tag quota of per resource exceeded")


class TopicTagOperations:
    """Labels topics."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def tag_resource(self, call: Call, params: Structure) -> Structure:
        topic = await self._topic(call, params, "TagResource")
        tags = read(params["Tags"])
        check_number({**topic.tags, **tags})
        await self._engine.resources.topics.update(
            topic.name, lambda current: replace(current, tags={**current.tags, **tags})
        )
        return {}

    async def untag_resource(self, call: Call, params: Structure) -> Structure:
        topic = await self._topic(call, params, "UntagResource")
        tag_keys = frozenset(params["TagKeys"])

        def without(current: Topic) -> Topic:
            left = {key: value for key, value in current.tags.items() if key not in tag_keys}
            return replace(current, tags=left)

        await self._engine.resources.topics.update(topic.name, without)
        return {}

    async def list_tags_for_resource(self, call: Call, params: Structure) -> Structure:
        topic = await self._topic(call, params, "ListTagsForResource")
        return {"Tags": [{"Key": key, "Value": value} for key, value in topic.tags.items()]}

    async def _topic(self, call: Call, params: Structure, action: str) -> Topic:
        try:
            return await topic_at(
                call, self._engine.resources.topics, params["ResourceArn"], action, "ResourceArn"
            )
        except AwsError as refusal:
            if refusal.query_code == "NotFound":
                raise error("ResourceNotFound", "Resource does not exist") from None
            raise
