"""A topic's access policy: the default one, what a policy may say, and one statement more or fewer."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import orjson

from redrive.access.keys import is_account
from redrive.access.patterns import PolicyInvalid
from redrive.access.policy_document import new_policy
from redrive.aws.sns.documents import names
from redrive.aws.sns.documents.errors import AttributeRefused, invalid
from redrive.model.names import ResourceName
from redrive.model.topic import Topic

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
    return topic.attributes.get(POLICY) or orjson.dumps(_default(topic.name)).decode()


def _default(name: ResourceName) -> dict[str, Any]:
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
    """Refuse a policy that is none, or speaks of actions that are not a topic's.

    Raises:
        AttributeRefused: With the recorded text.
    """
    try:
        new_policy(text)
    except PolicyInvalid:
        raise AttributeRefused("Policy Error: null") from None
    for statement in _statements(orjson.loads(text)):
        stated = statement["Action" if "Action" in statement else "NotAction"]
        actions: list[str] = [stated] if isinstance(stated, str) else stated
        if not all(map(_is_topic_action, actions)):
            raise AttributeRefused(_OUT_OF_SCOPE)


def _is_topic_action(action: str) -> bool:
    """Returns whether a pattern means one of a topic's actions at least; `SNS:*` does."""
    service, _, name = action.lower().partition(":")
    return action == "*" or (
        service == "sns" and any(fnmatchcase(known, name.replace("[", "[[]")) for known in _TOPIC_ACTIONS)
    )


def _statements(policy: dict[str, Any]) -> list[dict[str, Any]]:
    stated: list[dict[str, Any]] | dict[str, Any] = policy["Statement"]
    return stated if isinstance(stated, list) else [stated]


# ---- one statement more or fewer -----------------------------------------------------------------------------


def with_permission(topic: Topic, label: str, accounts: Sequence[str], actions: Sequence[str]) -> str:
    """The topic's policy with a statement that lets accounts carry out actions.

    Raises:
        AwsError: `InvalidParameter`: the label is taken, or an account or action is invalid.
    """
    policy = orjson.loads(text_of(topic))
    statements = _statements(policy)
    if any(statement.get("Sid") == label for statement in statements):
        raise invalid("Statement already exists")
    if not all(action.lower() in _TOPIC_ACTIONS or action == "*" for action in actions):
        raise invalid(_OUT_OF_SCOPE)
    added = {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": _one_or_all([f"arn:aws:iam::{_account(account)}:root" for account in accounts])},
        "Action": _one_or_all([f"SNS:{action}" for action in actions]),
        "Resource": names.arn_of(topic.name),
    }
    return orjson.dumps(policy | {"Statement": [*statements, added]}).decode()


def without_permission(topic: Topic, label: str) -> str | None:
    """The topic's policy without the statement of that label, if it has it; None if nothing is left."""
    policy = orjson.loads(text_of(topic))
    left = [statement for statement in _statements(policy) if statement.get("Sid") != label]
    return None if not left else orjson.dumps(policy | {"Statement": left}).decode()


def _account(name: str) -> str:
    whole = _ACCOUNT_ARN.fullmatch(name)
    account = name if whole is None else whole[1]
    if not is_account(account):
        raise invalid(_BAD_ACCOUNT)
    return account


def _one_or_all(values: list[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else values
