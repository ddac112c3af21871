"""Amazon SNS: topics and subscriptions, devices and text messages."""

from collections.abc import Iterable
from typing import Final

from redrive.aws.kit.call import WHOLE_SERVICE, Call, ResourceScope, values_of
from redrive.aws.kit.service import AwsService
from redrive.aws.sns.confirmations import QUESTION
from redrive.aws.sns.documents import names
from redrive.aws.sns.documents.errors import translated
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.profiles import MIB, QUERY, Profile
from redrive.aws.wire.shapes import Raw, Structure
from redrive.engine.engine import Engine

#: Parameters that name an existing topic: `topic_policy.topic_at` checks access to it, also by its own policy.
_TOPIC_PARAMETERS: Final = frozenset({"TopicArn", "ResourceArn", "TargetArn"})


async def _scopes(_: Engine, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    """The resources of a call; none of a topic, whose own policy the operations ask, too."""
    prefix = f"arn:aws:sns:{call.region}:{call.account}"
    if operation == "CreateTopic":
        return [ResourceScope(f"{prefix}:{params['Name']}")]
    if operation == "CreatePlatformApplication":
        return [ResourceScope(f"{prefix}:app/{params['Platform']}/{params['Name']}")]
    if operation == "Publish" and "PhoneNumber" in params:
        return [WHOLE_SERVICE]
    arns = values_of(params, "TargetArn", "PlatformApplicationArn", "EndpointArn")
    # A device's or an application's ARN has a slash, a topic's has none.
    scopes = [ResourceScope(_in_partition_aws(arn)) for arn in arns if "/" in arn]
    for arn in values_of(params, "SubscriptionArn"):
        subscription = names.subscription_in(arn)
        related = (names.arn_of(subscription.topic),)
        scopes.append(ResourceScope(names.subscription_arn_in(*subscription), related))
    if scopes or _TOPIC_PARAMETERS & params.keys():
        return scopes
    return [ResourceScope(f"{prefix}:*")]


def _in_partition_aws(arn: str) -> str:
    """The ARN with the partition `aws`, the only one that there is."""
    parsed = parse_arn(arn)
    return f"arn:aws:sns:{parsed.region}:{parsed.account}:{parsed.resource}"


def _amend(shapes: Raw) -> Raw:
    """The model as SNS behaves: Unsubscribe takes the token that the links in messages have.

    Its ARN is no required parameter here, since SNS words the error for a missing one in its own way (recorded).
    """
    unsubscribe = shapes["UnsubscribeInput"]
    members = {**unsubscribe["members"], "Token": shapes["ConfirmSubscriptionInput"]["members"]["Token"]}
    # The ARN is looked at before the attributes (recorded).
    set_attributes = shapes["SetPlatformApplicationAttributesInput"]
    return {
        **shapes,
        "UnsubscribeInput": {**unsubscribe, "required": [], "members": members},
        "SetPlatformApplicationAttributesInput": {**set_attributes, "required": ["PlatformApplicationArn"]},
    }


SERVICE: Final = AwsService(
    profile=Profile(
        name="sns",
        endpoint_prefix="sns",
        api_version="2010-03-31",
        protocols=QUERY,
        amended=_amend,
        unsigned=frozenset({"ConfirmSubscription", "Unsubscribe"}),  # links in its messages
        denied="AuthorizationError",
        # A mebibyte of messages, where a topic says so, of which escapes in forms make three, and what is around them.
        body_bytes_max=3 * MIB + MIB // 4,
    ),
    title="Sns",
    documents=(QUESTION,),  # besides topics and subscriptions
    translated=translated,
    scopes=_scopes,
)
