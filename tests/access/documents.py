"""Policies, principals and requests to ask about."""

import json
from collections.abc import Mapping
from typing import Any, Final

from redrive.access.patterns import Values
from redrive.access.policy import AccessRequest, Decision, evaluate, request_keys
from redrive.access.policy_document import parse_policy
from redrive.access.principals import Principal, account_root, service_principal, user_principal

OWNER: Final = "111111111111"
OTHER: Final = "222222222222"
QUEUE: Final = f"arn:aws:sqs:us-east-1:{OWNER}:orders"
TOPIC: Final = f"arn:aws:sns:us-east-1:{OWNER}:rentals"

ROOT: Final = account_root(OWNER)
STRANGER: Final = account_root(OTHER)
ANN: Final = user_principal(f"arn:aws:iam::{OWNER}:user/ann", "AIDAANN", {}, None)
BOB: Final = user_principal(f"arn:aws:iam::{OTHER}:user/bob", "AIDABOB", {}, None)
SNS: Final = service_principal("sns", "us-east-1")

Document = dict[str, Any]


def statement(**elements: object) -> Document:
    """A statement that lets everybody do everything to the queue, but for the elements given; None leaves one out."""
    whole = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": QUEUE, **elements}
    return {name: value for name, value in whole.items() if value is not None}


def policy(*statements: Document, version: str = "2012-10-17") -> str:
    return json.dumps({"Version": version, "Statement": list(statements)})


def ask(
    principal: Principal = STRANGER,
    action: str = "sqs:SendMessage",
    resource: str = QUEUE,
    keys: Mapping[str, Values] | None = None,
) -> AccessRequest:
    return AccessRequest(principal, action, resource, request_keys(keys or {}))


def decision(request: AccessRequest, *statements: Document, version: str = "2012-10-17") -> Decision:
    return evaluate(parse_policy(policy(*statements, version=version)), request, OWNER)


def allowed(request: AccessRequest, *statements: Document, version: str = "2012-10-17") -> bool:
    return decision(request, *statements, version=version).allowed
