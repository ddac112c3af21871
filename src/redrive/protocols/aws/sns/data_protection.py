"""Data-protection policies: kept and given back.

What they ask for is not carried out: finding a name or an address in a message takes the identifiers that Amazon
manages, and Redrive has none. A server that must not carry such data has to be kept from getting it. Refusing the
policies would keep whole deployments from being tried; so they are taken, and each is answered by a warning in the
server's log and a paragraph in its reference.
"""

import logging
from dataclasses import replace
from typing import Any, Final, NoReturn

import orjson

from redrive.model.topic import Topic
from redrive.protocols.aws.sns.errors import invalid
from redrive.protocols.aws.sns.topic_attributes import DATA_PROTECTION_POLICY

logger = logging.getLogger(__name__)

POLICY_BYTES_MAX: Final = 30 * 1024
_DIRECTIONS: Final = ("Inbound", "Outbound")


def text_of(topic: Topic) -> str:
    """The policy as it was given; empty where there is none."""
    return topic.attributes.get(DATA_PROTECTION_POLICY, "")


def changed(topic: Topic, text: str) -> Topic:
    """The topic with this policy, or without one where the text is empty.

    Raises:
        AwsError: `InvalidParameter`.
    """
    others = {name: value for name, value in topic.attributes.items() if name != DATA_PROTECTION_POLICY}
    if text:
        _check(text)
        others[DATA_PROTECTION_POLICY] = text
    return replace(topic, attributes=others)


def warn(topic: Topic) -> None:
    """Say that the topic has a policy that nothing carries out, if it has one."""
    if text_of(topic):
        logger.warning(
            "sns.data_protection_not_enforced topic=%s: its policy is kept, and messages are not searched",
            topic.name.key,
        )


def _check(text: str) -> None:
    try:
        policy = orjson.loads(text)
    except orjson.JSONDecodeError:
        policy = None
    if not isinstance(policy, dict) or len(text.encode()) > POLICY_BYTES_MAX:
        _refuse(f"must be a JSON object of at most {POLICY_BYTES_MAX} bytes")  # chosen
    statements = policy.get("Statement")
    if not isinstance(statements, list) or not statements:
        _refuse("Statement must be a list that is not empty")  # chosen
    for statement in statements:
        _check_statement(statement)


def _check_statement(statement: Any) -> None:
    if not isinstance(statement, dict):
        _refuse("Statement must be a list of objects")  # chosen
    if statement.get("DataDirection") not in _DIRECTIONS:
        _refuse("Statement DataDirection must be either Inbound or Outbound")


def _refuse(reason: str) -> NoReturn:
    raise invalid(f"DataProtectionPolicy Reason: {reason}")
