"""Topics with their attributes, policies and tags: create, find, change, delete."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from redrive.aws.kit.attributes import with_text
from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.sns.documents import limits, names, subscription_state, topic_attributes, topic_policy
from redrive.aws.sns.documents.errors import (
    PAGES,
    AttributeRefused,
    attribute_error,
    attributes_error,
    error,
    invalid,
)
from redrive.aws.sns.documents.message import BYTES_MAX, MAXIMUM_SIZE, bytes_max
from redrive.aws.sns.documents.topic_policy import check_access, topic_at
from redrive.aws.sns.protection import operations as data_protection
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.errors import AlreadyExists
from redrive.model.names import ResourceName
from redrive.model.topic import Topic

TAGS: Final = Tagging(
    too_many=lambda: error(
        "TagLimitExceeded", "Could not complete request: tag quota of per resource exceeded"
    ),
    duplicate=lambda: invalid("Duplicated keys are not allowed."),
    reserved=lambda _: invalid("Tags Reason: aws: prefixed tag key names are not allowed for external use."),
)


class TopicTags:
    """The tags of topics (`redrive.aws.kit.tagging.Tagged`)."""

    def __init__(self, engine: Engine) -> None:
        self._topics = engine.resources.topics

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the topic that a request names; raises AwsError if there is none."""
        return (await self._tagged_topic(request.call, request.params, request.operation)).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the topic that a request names; raises AwsError if there is none."""
        topic = await self._tagged_topic(request.call, request.params, request.operation)
        await self._topics.update(topic.name, lambda current: replace(current, tags=change(current.tags)))

    async def _tagged_topic(self, call: Call, params: Structure, action: str) -> Topic:
        try:
            return await topic_at(call, self._topics, params["ResourceArn"], action, "ResourceArn")
        except AwsError as refusal:
            if refusal.query_code == "NotFound":
                raise error("ResourceNotFound", "Resource does not exist") from None
            raise


class TopicOperations:
    """Creates, finds, changes and deletes topics."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def create_topic(self, call: Call, params: Structure) -> Structure:
        name = ResourceName(call.account, call.region, params["Name"])
        attributes: Mapping[str, str] = params.get("Attributes") or {}
        labels = TAGS.read(params.get("Tags"))
        try:
            new_topic = topic_attributes.new_topic(name, attributes, labels, call.now)
        except AttributeRefused as refusal:
            raise attributes_error(refusal) from None
        new_topic = data_protection.with_policy(new_topic, params.get("DataProtectionPolicy") or "")
        existing = await self._engine.resources.topics.get_stored(name)
        if existing is None:
            await limits.check_topics(self._engine.resources.topics, new_topic)
            try:
                existing = await self._engine.resources.topics.create(new_topic)
            except AlreadyExists:
                existing = await self._engine.resources.topics.get(name)
        if existing is not None:
            _check_same(existing, new_topic, attributes)
        return {"TopicArn": names.arn_of(name)}

    async def delete_topic(self, call: Call, params: Structure) -> Structure:
        topic = await self._engine.resources.topics.get_stored(names.topic_in(call, params["TopicArn"]))
        if topic is None:
            return {}
        check_access(call, topic, "DeleteTopic")
        if topic.archive_ms:
            raise error("InvalidState", "Cannot delete a topic with an active archive policy")  # chosen
        await self._engine.resources.topics.delete(topic)
        return {}

    async def list_topics(self, call: Call, params: Structure) -> Structure:
        everything = ResourceName(call.account, call.region)
        after = PAGES.after("ListTopics", params)
        topics = await self._engine.resources.topics.find(everything, after, PAGES.size + 1)

        def as_structure(topic: Topic) -> Structure:
            return {"TopicArn": names.arn_of(topic.name)}

        return PAGES.of("ListTopics", params, topics, as_structure, lambda topic: topic.name.key)

    async def get_topic_attributes(self, call: Call, params: Structure) -> Structure:
        topic = await topic_at(call, self._engine.resources.topics, params["TopicArn"], "GetTopicAttributes")
        subscriptions = self._engine.resources.subscriptions
        confirmed = (await subscriptions.count(topic.name)).confirmed
        unconfirmed = await subscriptions.unconfirmed(topic.name)
        pending = sum(subscription_state.is_visible(subscription, call.now) for subscription in unconfirmed)
        return {"Attributes": topic_attributes.attribute_texts(topic, confirmed, pending, call.now)}

    async def set_topic_attributes(self, call: Call, params: Structure) -> Structure:
        topic = await topic_at(call, self._engine.resources.topics, params["TopicArn"], "SetTopicAttributes")
        name, value = params["AttributeName"], params.get("AttributeValue") or ""
        before = topic

        def set_attribute(current: Topic) -> Topic:
            nonlocal before
            before = current  # another node may have given it an archive
            return topic_attributes.with_attribute(current, name, value, call.now)

        try:
            if name == MAXIMUM_SIZE:
                await self._check_size(topic, value, call.now)
            after = await self._engine.resources.topics.update(topic.name, set_attribute)
        except AttributeRefused as refusal:
            raise attribute_error(refusal) from None
        if before.archive_ms and not after.archive_ms:
            await self._engine.operations.drop_archive(before)
        return {}

    async def _check_size(self, topic: Topic, value: str, now: int) -> None:
        """Refuse a size that the topic's subscriptions do not allow."""
        changed_topic = topic_attributes.with_attribute(topic, MAXIMUM_SIZE, value, now)
        if bytes_max(changed_topic) > BYTES_MAX:
            subscriptions = self._engine.resources.subscriptions
            page = await subscriptions.of(topic.name, limit=limits.LARGE_SUBSCRIPTIONS_MAX + 1)
            limits.check_large((each.protocol for each in page), len(page))

    # ---- policies ----------------------------------------------------------------------------------------------

    async def add_permission(self, call: Call, params: Structure) -> Structure:
        def policy_of(topic: Topic) -> str:
            accounts, actions = params["AWSAccountId"], params["ActionName"]
            return topic_policy.with_permission(topic, params["Label"], accounts, actions)

        await self._change_policy(call, params, "AddPermission", policy_of)
        return {}

    async def remove_permission(self, call: Call, params: Structure) -> Structure:
        def policy_of(topic: Topic) -> str | None:
            return topic_policy.without_permission(topic, params["Label"])

        await self._change_policy(call, params, "RemovePermission", policy_of)
        return {}

    async def _change_policy(
        self, call: Call, params: Structure, action: str, policy_of: Callable[[Topic], str | None]
    ) -> None:
        topic = await topic_at(call, self._engine.resources.topics, params["TopicArn"], action)

        def with_policy(current: Topic) -> Topic:
            return with_text(current, topic_policy.POLICY, policy_of(current) or None)

        await self._engine.resources.topics.update(topic.name, with_policy)


def _check_same(existing: Topic, topic: Topic, attributes: Mapping[str, str]) -> None:
    """Refuse to create a topic that exists with other attributes, tags or protection."""
    if topic_attributes.differ(existing, topic, attributes):
        raise invalid("Attributes Reason: Topic already exists with different attributes")
    if not topic.tags.items() <= existing.tags.items():  # fewer than it has will do: recorded
        raise invalid("Tags Reason: Topic already exists with different tags")
    protection = data_protection.text_of(topic)
    if protection and protection != data_protection.text_of(existing):
        raise invalid("DataProtectionPolicy Reason: Topic already exists with a different one")  # chosen
