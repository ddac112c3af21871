"""Provisioning: what the settings declare is made, or changed to be as declared, when the server starts.

It is done by the operations that a client would call, so that the services' own rules hold and their own words say
what is wrong. What is not declared is left alone: nothing is ever removed.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.access.keys import SECRET_CHARS_MIN, Keyring, chosen_access_key
from redrive.access.principals import account_root
from redrive.aws.gateway.inner_calls import BASE_URL, InnerCalls
from redrive.aws.kit.service import Facades
from redrive.aws.sqs.attributes import TABLE
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import Runtime
from redrive.settings import Settings, SettingsInvalid, is_loopback
from redrive.settings.declared import (
    Declarations,
    DeclaredKey,
    DeclaredQueue,
    DeclaredSubscription,
    DeclaredTopic,
)

logger = logging.getLogger(__name__)

# These name other queues, which may be declared further down: all queues are made before any of these is set.
_ABOUT_OTHERS: Final = ("RedrivePolicy", "RedriveAllowPolicy")
_TARGET: Final = "deadLetterTargetArn"
_FIXED: Final = ("FifoQueue", "FifoTopic")  # at creation, for good
_FIRST: Final = ("FilterPolicyScope",)  # what others are read by


class Provisioner:
    """Makes what is declared."""

    def __init__(self, facades: Facades, keyring: Keyring, runtime: Runtime, region: str) -> None:
        """Apply declarations through the services' own operations.

        Args:
            facades: By botocore's names of the services: `sqs` and `sns`.
            keyring: Where keys are kept.
            runtime: Time, and ids of calls.
            region: Of what names none.
        """
        self._calls = InnerCalls(facades, runtime)
        self._keyring = keyring
        self._runtime = runtime
        self._region = region

    async def apply(self, declared: Declarations) -> None:
        """Make or change all of it; twice is once.

        Raises:
            SettingsInvalid: A service refused something; the message names it, and why.
        """
        for key in declared.keys:
            await self._key(key)
        for queue in declared.queues:
            await self._make_queue(queue)
        for queue in declared.queues:
            await self._set_policies(queue)
        for topic in declared.topics:
            await self._topic(topic)
        if declared.keys or declared.queues or declared.topics:
            logger.info(
                "resources.provisioned queues=%d topics=%d keys=%d",
                len(declared.queues),
                len(declared.topics),
                len(declared.keys),
            )

    async def _key(self, declared: DeclaredKey) -> None:
        try:
            key = chosen_access_key(declared.account, declared.id, declared.secret, self._runtime.clock.now())
        except ValueError as error:
            raise SettingsInvalid(f"key {declared.id}: {error}") from None
        await self._keyring.put(key)

    # ---- queues ----------------------------------------------------------------------------------------------------

    async def _make_queue(self, queue: DeclaredQueue) -> None:
        fixed, others = _parted(queue.attributes)
        own = {name: value for name, value in others.items() if name not in _ABOUT_OTHERS}
        await self._call(queue, "sqs", "CreateQueue", QueueName=queue.name, Attributes=fixed)
        if own:
            await self._call(queue, "sqs", "SetQueueAttributes", QueueUrl=_url(queue), Attributes=own)
        if queue.tags:
            await self._call(queue, "sqs", "TagQueue", QueueUrl=_url(queue), Tags=dict(queue.tags))

    async def _set_policies(self, queue: DeclaredQueue) -> None:
        policies = {
            name: self._with_arn(queue.attributes[name], queue)
            for name in _ABOUT_OTHERS
            if name in queue.attributes
        }
        if policies:
            await self._call(queue, "sqs", "SetQueueAttributes", QueueUrl=_url(queue), Attributes=policies)

    def _with_arn(self, policy: str, declared: DeclaredQueue | DeclaredTopic) -> str:
        """A redrive policy whose target may have been a queue's bare name."""
        try:
            document = json.loads(policy)
            target = document[_TARGET]
        except (ValueError, KeyError, TypeError):
            return policy  # the service says what is wrong with it, if anything
        if not isinstance(target, str) or target.startswith("arn:"):
            return policy
        return json.dumps({**document, _TARGET: self._queue_arn(target, declared)})

    def _queue_arn(self, name: str, declared: DeclaredQueue | DeclaredTopic) -> str:
        return f"arn:aws:sqs:{declared.region or self._region}:{declared.account}:{name}"

    # ---- topics ----------------------------------------------------------------------------------------------------

    async def _topic(self, topic: DeclaredTopic) -> None:
        fixed, others = _parted(topic.attributes)
        answer = await self._call(topic, "sns", "CreateTopic", Name=topic.name, Attributes=fixed)
        arn: str = answer["TopicArn"]
        for name, value in others.items():
            attribute = {"AttributeName": name, "AttributeValue": value}
            await self._call(topic, "sns", "SetTopicAttributes", TopicArn=arn, **attribute)
        if topic.tags:
            tags = [{"Key": name, "Value": value} for name, value in topic.tags.items()]
            await self._call(topic, "sns", "TagResource", ResourceArn=arn, Tags=tags)
        for subscription in topic.subscriptions:
            await self._subscribe(topic, arn, subscription)

    async def _subscribe(self, topic: DeclaredTopic, arn: str, subscription: DeclaredSubscription) -> None:
        endpoint = subscription.endpoint
        if subscription.protocol == "sqs" and not endpoint.startswith("arn:"):
            endpoint = self._queue_arn(endpoint, topic)
        attributes = {name: self._with_arn(value, topic) for name, value in subscription.attributes.items()}
        parameters = {
            "TopicArn": arn,
            "Protocol": subscription.protocol,
            "Endpoint": endpoint,
            "ReturnSubscriptionArn": True,
        }
        try:
            await self._attempt(topic, "sns", "Subscribe", **parameters, Attributes=attributes)
        except AwsError:  # it stands, and differs; or something is wrong with it, and a call below says what
            answer = await self._call(topic, "sns", "Subscribe", **parameters)
            for name in sorted(attributes, key=lambda name: name not in _FIRST):
                attribute = {"AttributeName": name, "AttributeValue": attributes[name]}
                where = {"SubscriptionArn": answer["SubscriptionArn"]}
                await self._call(topic, "sns", "SetSubscriptionAttributes", **where, **attribute)

    # ---- calls -----------------------------------------------------------------------------------------------------

    async def _call(
        self, declared: DeclaredQueue | DeclaredTopic, service: str, name: str, **params: Any
    ) -> Any:
        try:
            return await self._attempt(declared, service, name, **params)
        except AwsError as error:
            kind = "queue" if isinstance(declared, DeclaredQueue) else "topic"
            about = f" subscription of {params['Endpoint']}:" if "Endpoint" in params else ""
            text = error.query_message or error.code
            raise SettingsInvalid(
                f"declared {kind} {declared.name}:{about} {text}{_bounds(text, params)}"
            ) from None

    async def _attempt(
        self, declared: DeclaredQueue | DeclaredTopic, service: str, name: str, **params: Any
    ) -> Any:
        """Call an operation as the owner of what is declared.

        Raises:
            AwsError: The service refuses.
        """
        caller = account_root(declared.account)
        return await self._calls.call(service, name, params, caller, declared.region or self._region)


def _parted(attributes: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split attributes into those fixed at creation and those that can be set at any time."""
    fixed = {name: value for name, value in attributes.items() if name in _FIXED}
    return fixed, {name: value for name, value in attributes.items() if name not in _FIXED}


def _bounds(text: str, params: Mapping[str, Any]) -> str:
    """The value that SQS refused and its bounds, which the error of SQS leaves out."""
    attributes: Mapping[str, str] = params.get("Attributes", {})
    refused = next((name for name in attributes if f"parameter {name}." in text), None)
    if refused is None or not (complaint := TABLE.complaint(refused, attributes[refused])):
        return ""
    return f" {complaint}"


def check_keys(keys: Sequence[DeclaredKey], settings: Settings) -> None:
    """Refuse guessable keys for a server that is reachable from other machines.

    Raises:
        SettingsInvalid: A secret is too short.
    """
    if is_loopback(settings.host) or settings.insecure_test_keys:
        return
    for key in keys:
        if len(key.secret) < SECRET_CHARS_MIN:
            raise SettingsInvalid(
                f"key {key.id} has a secret of fewer than {SECRET_CHARS_MIN} characters, which can be guessed by anyone"
                f" who reaches {settings.host}; for development, insecure_test_keys allows it"
            )


def _url(queue: DeclaredQueue) -> str:
    return f"{BASE_URL}/{queue.account}/{queue.name}"
