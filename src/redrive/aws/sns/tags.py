"""Tags of topics, the only resources of SNS that have any."""

from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.sns.documents.access import topic_at
from redrive.aws.sns.documents.errors import error, invalid
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.topic import Topic

TAGS: Final = Tagging(
    too_many=lambda: error(
        "TagLimitExceeded", "Could not complete request: tag quota of per resource exceeded"
    ),
    duplicate=lambda: invalid("Duplicated keys are not allowed."),
    reserved=lambda _: invalid("Tags Reason: aws: prefixed tag key names are not allowed for external use."),
)


class TopicTags:
    """Topics, as `Tagging` labels them."""

    def __init__(self, engine: Engine) -> None:
        self._topics = engine.resources.topics

    async def tags(self, request: TagRequest) -> Tags:
        """See `Tagged.tags`."""
        return (await self._topic(request.call, request.params, request.operation)).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """See `Tagged.retag`."""
        topic = await self._topic(request.call, request.params, request.operation)
        await self._topics.update(topic.name, lambda current: replace(current, tags=change(current.tags)))

    async def _topic(self, call: Call, params: Structure, action: str) -> Topic:
        try:
            return await topic_at(call, self._topics, params["ResourceArn"], action, "ResourceArn")
        except AwsError as refusal:
            if refusal.query_code == "NotFound":
                raise error("ResourceNotFound", "Resource does not exist") from None
            raise
