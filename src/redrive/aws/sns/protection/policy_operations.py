"""PutDataProtectionPolicy and GetDataProtectionPolicy."""

from redrive.aws.kit.call import Call
from redrive.aws.sns.documents.access import topic_at
from redrive.aws.sns.protection.operations import changed, text_of
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.topic import Topic


class DataProtectionOperations:
    """A topic's policy, put and given back."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def put_data_protection_policy(self, call: Call, params: Structure) -> Structure:
        topic = await self._topic(call, params, "PutDataProtectionPolicy")
        policy: str = params["DataProtectionPolicy"]
        await self._engine.resources.topics.update(topic.name, lambda current: changed(current, policy))
        return {}

    async def get_data_protection_policy(self, call: Call, params: Structure) -> Structure:
        topic = await self._topic(call, params, "GetDataProtectionPolicy")
        return {"DataProtectionPolicy": text_of(topic)}

    async def _topic(self, call: Call, params: Structure, action: str) -> Topic:
        return await topic_at(
            call, self._engine.resources.topics, params["ResourceArn"], action, "ResourceArn"
        )
