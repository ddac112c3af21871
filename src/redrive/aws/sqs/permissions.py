"""AddPermission and RemovePermission: a queue's policy, one statement at a time."""

from collections.abc import Callable

import orjson

from redrive.access.keys import is_account
from redrive.aws.kit.attributes import with_text
from redrive.aws.kit.call import Call
from redrive.aws.sqs import names, policies
from redrive.aws.sqs.access import QueueAccess
from redrive.aws.sqs.errors import error, invalid, missing
from redrive.aws.sqs.policies import Document
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.queue import Queue

ACTIONS_MAX = 7
_SHAREABLE = frozenset(
    {
        "*",
        "SendMessage",
        "ReceiveMessage",
        "DeleteMessage",
        "ChangeMessageVisibility",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
    }
)


class QueuePermissions:
    """Changes queues' policies."""

    def __init__(self, engine: Engine, access: QueueAccess) -> None:
        self._engine = engine
        self._access = access

    async def add_permission(self, call: Call, params: Structure) -> Structure:
        queue = await self._access.at(call, params["QueueUrl"], "AddPermission")
        statement = _new_statement(queue, params)
        await self._change_policy(queue, lambda policy: _with_statement(policy, statement))
        return {}

    async def remove_permission(self, call: Call, params: Structure) -> Structure:
        queue = await self._access.at(call, params["QueueUrl"], "RemovePermission")
        await self._change_policy(queue, lambda policy: _without_statement(policy, params["Label"]))
        return {}

    async def _change_policy(self, queue: Queue, change: Callable[[Document], Document]) -> None:
        def with_policy(current: Queue) -> Queue:
            policy = change(_policy_of(current))
            return with_text(current, "Policy", _serialize(policy) if policy["Statement"] else None)

        await self._engine.resources.queues.update(queue.name, with_policy)


def _policy_of(queue: Queue) -> Document:
    text = queue.attributes.get("Policy")
    if text is None:
        return {
            "Version": "2008-10-17",
            "Id": f"{names.arn_of(queue.name)}/SQSDefaultPolicy",
            "Statement": [],
        }
    return policies.read(text)


def _serialize(policy: Document) -> str:
    text = orjson.dumps(policy).decode()
    if not policies.within_quotas(policy, text):
        raise error("OverLimit", "The policy would be larger than a queue's policy may be.")
    return text


def _with_statement(policy: Document, statement: Document) -> Document:
    label = statement["Sid"]
    if any(each.get("Sid") == label for each in policy["Statement"]):
        raise invalid("Label", label, "Already exists.")
    return policy | {"Statement": [*policy["Statement"], statement]}


def _without_statement(policy: Document, label: str) -> Document:
    statements = [statement for statement in policy["Statement"] if statement.get("Sid") != label]
    if len(statements) == len(policy["Statement"]):
        raise invalid("Label", label, "can't find label.")
    return policy | {"Statement": statements}


def _new_statement(queue: Queue, params: Structure) -> Document:
    accounts, actions = params["AWSAccountIds"], params["Actions"]
    for name, values in (("AWSAccountId", accounts), ("ActionName", actions)):
        if not values:
            raise missing(name)
    if len(actions) > ACTIONS_MAX:
        raise error("OverLimit", f"{len(actions)} Actions were found, maximum allowed is {ACTIONS_MAX}.")
    for action in actions:
        if action not in _SHAREABLE:
            raise invalid(
                "ActionName", f"SQS:{action}", "Only the queue owner is allowed to invoke this action."
            )
    for account in accounts:
        if not is_account(account):
            raise invalid("PrincipalId", f"[{account}]", "Unable to verify.")
    return {
        "Sid": params["Label"],
        "Effect": "Allow",
        "Principal": {"AWS": _one_or_list([f"arn:aws:iam::{account}:root" for account in accounts])},
        "Action": _one_or_list([f"SQS:{action}" for action in actions]),
        "Resource": names.arn_of(queue.name),
    }


def _one_or_list(values: list[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else values
