"""Stacks and change sets, found as callers name them.

The ARN of a stack leads to it even after it was deleted; its name does not.
"""

from redrive.aws.cloudformation.documents.errors import error, invalid, no_stack
from redrive.aws.cloudformation.documents.history import CHANGE_SET, ChangeSet
from redrive.aws.cloudformation.documents.records import STACK, STACK_NAME, Stack, id_in
from redrive.aws.kit.call import Call
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import ResourceName


def stack_name(call: Call, name: str) -> ResourceName:
    """The name of a caller's stack."""
    return ResourceName(call.account, call.region, name)


async def find_stack(engine: Engine, call: Call, identifier: str) -> Stack | None:
    """The stack of a name, or of an ARN even if the stack was deleted; None: there is none.

    It is read from the store, as this node's cache may be behind: an update that keeps the previous template is
    computed from it, and nothing checks later that it was current.
    """
    if "/" in identifier and not identifier.startswith("arn:"):  # no stack has such a name
        return None

    async def find(draft: Draft) -> Stack | None:
        key: str | None = f"{call.account}/{call.region}/{id_in(identifier)}"
        if not identifier.startswith("arn:"):
            key = await draft.get(STACK_NAME, stack_name(call, identifier).key)
        if key is None:
            return None
        return await draft.get(STACK, key)

    return await engine.resources.write(find)


async def require_stack(engine: Engine, call: Call, identifier: str) -> Stack:
    """The stack of a name or an ARN; raises AwsError if the stack does not exist."""
    stack = await find_stack(engine, call, identifier)
    if stack is None:
        raise no_stack(identifier)
    return stack


async def current_stack_in(draft: Draft, stack: Stack) -> Stack:
    """The stack as a draft reads it; raises AwsError if it does not exist any more."""
    current = await draft.get(STACK, stack.key)
    if current is None:
        raise no_stack(stack.name.name)
    return current


async def find_change_set(engine: Engine, call: Call, name_or_arn: str, stack_name: str | None) -> ChangeSet:
    """The change set of an ARN, or of its name and its stack's; raises AwsError if it does not exist."""
    prefix = f"{call.account}/{call.region}/"
    if not name_or_arn.startswith("arn:"):
        if not stack_name:
            raise invalid("StackName must be specified if ChangeSetName is not specified as an ARN.")
        stack = await require_stack(engine, call, stack_name)
        prefix = f"{stack.key}/"
    change_sets = await engine.resources.documents.find(CHANGE_SET, prefix)
    # An executed change set leaves its name to a later one, which is found first though it may have the same millisecond.
    for change_set in sorted(change_sets, key=lambda change_set: change_set.execution == "EXECUTE_COMPLETE"):
        if name_or_arn == change_set.name or id_in(name_or_arn) == change_set.id:
            return change_set
    raise error("ChangeSetNotFoundException", f"ChangeSet [{name_or_arn}] does not exist")
