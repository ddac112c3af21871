"""A topic's access policy: the default one, what a policy may say, and one statement more or fewer; access by it."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import orjson

from redrive.access.keys import is_account
from redrive.access.patterns import PolicyInvalid, Values
from redrive.access.policy_document import new_policy
from redrive.access.principals import ANONYMOUS
from redrive.aws.kit.call import Call
from redrive.aws.kit.json_cursor import as_list
from redrive.aws.sns.documents import names
from redrive.aws.sns.documents.errors import AttributeRefused, denied, invalid, no_such
from redrive.engine.resources import Topics
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

POLICY: Final = "Policy"
_OUT_OF_SCOPE: Final = "Policy statement action out of service scope!"
_BAD_ACCOUNT: Final = "A provided account ID is not valid"
_DEFAULT_ACTIONS: Final = (
    "GetTopicAttributes",
    "SetTopicAttributes",
    "AddPermission",
    "RemovePermission",
    "DeleteTopic",
    "Subscribe",
    "ListSubscriptionsByTopic",
    "Publish",
)
# What a policy can speak of: the actions whose resource is a topic ("Actions defined by Amazon SNS"), and Receive,
# which policies written by the old console name.
_TOPIC_ACTIONS: Final = frozenset(
    action.lower()
    for action in (
        *_DEFAULT_ACTIONS,
        "GetDataProtectionPolicy",
        "ListTagsForResource",
        "PutDataProtectionPolicy",
        "Receive",
        "TagResource",
        "UntagResource",
    )
)
_ACCOUNT_ARN: Final = re.compile(r"arn:aws:iam::([0-9]{12}):root")


def text_of(topic: Topic) -> str:
    """The policy that GetTopicAttributes answers: the topic's own, or the default."""
    return topic.attributes.get(POLICY) or orjson.dumps(_default_policy(topic.name)).decode()


def _default_policy(name: ResourceName) -> dict[str, Any]:
    return {
        "Version": "2008-10-17",
        "Id": "__default_policy_ID",
        "Statement": [
            {
                "Sid": "__default_statement_ID",
                "Effect": "Allow",
                "Principal": {"AWS": "*"},
                "Action": [f"SNS:{action}" for action in _DEFAULT_ACTIONS],
                "Resource": names.arn_of(name),
                "Condition": {"StringEquals": {"AWS:SourceOwner": name.account}},
            }
        ],
    }


def check(text: str) -> None:
    """Refuse a text that is no policy, or has actions that a topic does not have; raises AttributeRefused."""
    try:
        new_policy(text)
    except PolicyInvalid:
        raise AttributeRefused("Policy Error: null") from None
    for statement in as_list(orjson.loads(text)["Statement"]):
        value = statement["Action" if "Action" in statement else "NotAction"]
        actions: list[str] = [value] if isinstance(value, str) else value
        if not all(map(_is_topic_action, actions)):
            raise AttributeRefused(_OUT_OF_SCOPE)


def _is_topic_action(action: str) -> bool:
    """Returns whether a pattern matches at least one action of topics, as `SNS:*` does."""
    service, _, name = action.lower().partition(":")
    return action == "*" or (
        service == "sns" and any(fnmatchcase(each, name.replace("[", "[[]")) for each in _TOPIC_ACTIONS)
    )


# ---- one statement more or fewer -----------------------------------------------------------------------------


def with_permission(topic: Topic, label: str, accounts: Sequence[str], actions: Sequence[str]) -> str:
    """The topic's policy with a statement that lets accounts carry out actions.

    Raises:
        AwsError: `InvalidParameter`: the label is taken, or an account or action is invalid.
    """
    policy = orjson.loads(text_of(topic))
    statements = as_list(policy["Statement"])
    if any(statement.get("Sid") == label for statement in statements):
        raise invalid("Statement already exists")
    if not all(action.lower() in _TOPIC_ACTIONS or action == "*" for action in actions):
        raise invalid(_OUT_OF_SCOPE)
    added = {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {
            "AWS": _one_or_list([f"arn:aws:iam::{_account_of(account)}:root" for account in accounts])
        },
        "Action": _one_or_list([f"SNS:{action}" for action in actions]),
        "Resource": names.arn_of(topic.name),
    }
    return orjson.dumps(policy | {"Statement": [*statements, added]}).decode()


def without_permission(topic: Topic, label: str) -> str | None:
    """The topic's policy without the statement of that label, if it has it; None: it has no other statement."""
    policy = orjson.loads(text_of(topic))
    statements = [statement for statement in as_list(policy["Statement"]) if statement.get("Sid") != label]
    return None if not statements else orjson.dumps(policy | {"Statement": statements}).decode()


def _account_of(name: str) -> str:
    """The account that an id, or the ARN of its root, names; raises AwsError."""
    match = _ACCOUNT_ARN.fullmatch(name)
    account = name if match is None else match[1]
    if not is_account(account):
        raise invalid(_BAD_ACCOUNT)
    return account


def _one_or_list(values: list[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else values


_NO_KEYS: Final[Mapping[str, Values]] = {}


# ---- the topic that a call names, and the permission of its caller -------------------------------------------


async def topic_at(
    call: Call,
    topics: Topics,
    arn: str,
    action: str,
    parameter: str = "TopicArn",
    *,
    keys: Mapping[str, Values] = _NO_KEYS,
) -> Topic:
    """The topic of an ARN, for an action the caller may do there.

    Args:
        call: The call.
        topics: The topics that there are.
        arn: The topic's.
        action: The action, without the service.
        parameter: The parameter that has the ARN.
        keys: The condition keys that the operation has of its own.

    Raises:
        AwsError: The ARN is not one of a topic here, there is no such topic, or the caller may not.
    """
    name = names.topic_in(call, arn, parameter)
    topic = topics.known(name) or await topics.get(name)
    if topic is None:
        raise no_such("Topic")
    check_access(call, topic, action, keys)
    return topic


def check_access(call: Call, topic: Topic, action: str, keys: Mapping[str, Values] = _NO_KEYS) -> None:
    """Refuse an action on a topic that the caller has no permission for; raises AwsError (`AuthorizationError`)."""
    owner = topic.name.account
    # The default policy lets the owner's calls in and nobody else's: so does a topic without a policy.
    policy = topic.attributes.get(POLICY)
    if call.is_open(owner, policy):
        return
    arn = names.arn_of(topic.name)
    decision = call.decide(f"sns:{action}", arn, owner, policy, keys)
    if not decision.allowed:
        raise denied(call.principal.name, action, arn, decision)


def is_unsigned(call: Call) -> bool:
    """Returns whether the call is unsigned: a link in a message was followed."""
    return call.principal is ANONYMOUS


def check_owner(call: Call, subscription: Subscription, action: str) -> None:
    """Refuse an action that is for the owners of a subscription and of its topic alone.

    Raises:
        AwsError: `AuthorizationError`.
    """
    if call.account not in (subscription.owner, subscription.topic.account):
        raise denied(call.principal.name, action, names.subscription_arn(subscription))
