"""Stack policies: the resources that an update may not touch."""

import json
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final

from redrive.aws.cloudformation.changes.programs import Services, object_text
from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.cloudformation.documents.lookup import require_stack
from redrive.aws.cloudformation.documents.records import STACK, is_in_progress
from redrive.aws.kit.call import Call
from redrive.aws.kit.json_cursor import as_list
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

POLICY_BYTES_MAX: Final = 16_384


def read_policy(text: str) -> list[Mapping[str, Any]]:
    """The statements of a stack policy; raises AwsError if the text is not a policy."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise _invalid() from None
    if document == {}:  # no policy, which allows all (recorded)
        return []
    body = document.get("Statement") if isinstance(document, dict) else None
    statements = as_list(body)
    if len(text.encode()) > POLICY_BYTES_MAX or not all(map(_is_statement, statements)):
        raise _invalid()
    return statements


_ACTIONS: Final = frozenset({"Update:*", "Update:Modify", "Update:Replace", "Update:Delete"})


def _invalid() -> AwsError:
    return invalid("Error validating stack policy: Invalid stack policy")


def _is_statement(statement: Any) -> bool:
    """True if a stack policy may have the statement: one about every principal and about updates."""
    if not isinstance(statement, Mapping) or statement.get("Principal", "*") != "*":
        return False
    action_values = [statement[name] for name in ("Action", "NotAction") if name in statement]
    return all(action == "*" or action in _ACTIONS for value in action_values for action in as_list(value))


def allows(policy: str, action: str, logical_id: str, kind: str) -> bool:
    """Returns whether a stack policy (empty: none) allows an action, such as `Update:Modify`, on a resource of a type."""
    statements = read_policy(policy) if policy else []
    if not statements:
        return True
    allowed = False
    for statement in statements:
        if not _applies(statement, action, logical_id, kind):
            continue
        if statement.get("Effect") == "Deny":
            return False
        allowed = True
    return allowed


def denial(action: str, logical_id: str) -> str:
    """The reason why a stack policy stops an update."""
    text = f"Statement does not allow [{action}] for resource [LogicalResourceId/{logical_id}]"
    return f"Action denied by stack policy: {text}"


def _applies(statement: Mapping[str, Any], action: str, logical_id: str, kind: str) -> bool:
    """True if a statement is about the action, the resource and its type."""
    resource_name = f"LogicalResourceId/{logical_id}"
    return (
        _matches(statement, "Action", action)
        and _matches(statement, "Resource", resource_name)
        and _holds(statement.get("Condition"), kind)
    )


def _matches(statement: Mapping[str, Any], element: str, value: str) -> bool:
    """True if an element (`Action`) names a value, or the opposite one (`NotAction`) does not name it."""
    is_negated = f"Not{element}" in statement
    patterns = as_list(statement.get(f"Not{element}" if is_negated else element, []))
    return is_negated != any(fnmatchcase(value, str(pattern)) for pattern in patterns)


def _holds(condition: Any, kind: str) -> bool:
    """True if a condition, of any operator, names the type of the resource by its key `ResourceType`, or is none."""
    if not isinstance(condition, Mapping):
        return True
    types = [names.get("ResourceType", []) for names in condition.values() if isinstance(names, Mapping)]
    return any(fnmatchcase(kind, str(name)) for names in types for name in as_list(names))


async def policy_in(services: Services, call: Call, params: Structure, member: str) -> str:
    """The stack policy in a request, as a text or by its address; empty: the request has none.

    Raises:
        AwsError: The request has both, the text is not a policy, or it cannot be read.
    """
    text: str = params.get(f"{member}Body") or ""
    url = params.get(f"{member}URL")
    if text and url:
        raise invalid(f"You cannot specify both {member}URL and {member}Body")
    if url:
        text = await object_text(services, call, url)
    if text:
        read_policy(text)
    return text


class StackPolicyOperations:
    """Keeps stack policies."""

    def __init__(self, engine: Engine, services: Services) -> None:
        self._engine = engine
        self._services = services

    async def set_stack_policy(self, call: Call, params: Structure) -> Structure:
        stack = await require_stack(self._engine, call, params["StackName"])
        text = await policy_in(self._services, call, params, "StackPolicy")
        read_policy(text)
        await self._engine.resources.documents.update(
            STACK, stack.key, lambda current: replace(current, policy=text)
        )
        return {}

    async def get_stack_policy(self, call: Call, params: Structure) -> Structure:
        stack = await require_stack(self._engine, call, params["StackName"])
        policy = (stack.policy_during if is_in_progress(stack) else "") or stack.policy
        return {"StackPolicyBody": policy} if policy else {}
