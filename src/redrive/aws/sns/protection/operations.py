"""Data-protection policies as topics have them: put, given back, and read when they are to be carried out."""

from functools import lru_cache

from redrive.aws.kit.attributes import with_text
from redrive.aws.kit.call import Call
from redrive.aws.sns.documents.errors import invalid
from redrive.aws.sns.documents.topic_attributes import DATA_PROTECTION_POLICY
from redrive.aws.sns.documents.topic_policy import topic_at
from redrive.aws.sns.protection.policy import ProtectionPolicy
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.topic import Topic


def text_of(topic: Topic) -> str:
    """The policy as it was given; empty if there is none."""
    return topic.attributes.get(DATA_PROTECTION_POLICY, "")


def with_policy(topic: Topic, text: str) -> Topic:
    """The topic with this policy, or without one where the text is empty; raises AwsError (`InvalidParameter`)."""
    if text and topic.ordered:
        raise invalid("DataProtectionPolicy Reason: FIFO topics cannot have one")  # chosen
    if text:
        _read_policy(text)
    return with_text(topic, DATA_PROTECTION_POLICY, text or None)


def policy_of(topic: Topic) -> ProtectionPolicy:
    """The policy of a topic that has one.

    Raises:
        AwsError: `InvalidParameter`: it is not acceptable any more, so nothing can be published there.
    """
    return _read_policy(text_of(topic))


# Called at each publication; to compile the finders takes a millisecond each.
@lru_cache(maxsize=256)
def _read_policy(text: str) -> ProtectionPolicy:
    # The finders are 60 modules, which take 50 ms to import, and few servers have such a policy.
    from redrive.aws.sns.protection.reader import (  # noqa: PLC0415 - as above
        ProtectionPolicyInvalid,
        read_protection_policy,
    )

    try:
        return read_protection_policy(text)
    except ProtectionPolicyInvalid as refusal:
        raise invalid(f"DataProtectionPolicy Reason: {refusal}") from refusal


# ---- operations ------------------------------------------------------------------------------------------------------


class DataProtectionOperations:
    """A topic's policy, put and given back."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def put_data_protection_policy(self, call: Call, params: Structure) -> Structure:
        topic = await self._topic(call, params, "PutDataProtectionPolicy")
        policy: str = params["DataProtectionPolicy"]
        await self._engine.resources.topics.update(topic.name, lambda current: with_policy(current, policy))
        return {}

    async def get_data_protection_policy(self, call: Call, params: Structure) -> Structure:
        topic = await self._topic(call, params, "GetDataProtectionPolicy")
        return {"DataProtectionPolicy": text_of(topic)}

    async def _topic(self, call: Call, params: Structure, action: str) -> Topic:
        return await topic_at(
            call, self._engine.resources.topics, params["ResourceArn"], action, "ResourceArn"
        )
