"""Stacks as callers name them: by name, or by the ARN that still leads to those that were deleted."""

from redrive.aws.cloudformation.documents.errors import no_stack
from redrive.aws.cloudformation.documents.names import id_in
from redrive.aws.cloudformation.documents.records import STACK, STACK_NAME, Stack
from redrive.aws.kit.call import Call
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import ResourceName


def place(call: Call, name: str) -> ResourceName:
    """The name of a caller's stack."""
    return ResourceName(call.account, call.region, name)


async def find_stack(engine: Engine, call: Call, identifier: str) -> Stack | None:
    """The stack of a name, or of an ARN, whether it was deleted or not.

    Of the store: what is made of it, such as an update with the template before, says nothing of what it was made of.
    """
    if "/" in identifier and not identifier.startswith("arn:"):
        return None

    async def find(draft: Draft) -> Stack | None:
        key: str | None = f"{call.account}/{call.region}/{id_in(identifier)}"
        if not identifier.startswith("arn:"):
            key = await draft.get(STACK_NAME, place(call, identifier).key)
        if key is None:
            return None
        return await draft.get(STACK, key)

    return await engine.resources.write(find)


async def standing_stack(engine: Engine, call: Call, identifier: str) -> Stack:
    """The stack of a name or an ARN.

    Raises:
        AwsError: The stack does not exist.
    """
    stack = await find_stack(engine, call, identifier)
    if stack is None:
        raise no_stack(identifier)
    return stack


async def current_in(draft: Draft, stack: Stack) -> Stack:
    """The stack as a draft finds it.

    Raises:
        AwsError: It is not there any more.
    """
    found = await draft.get(STACK, stack.key)
    if found is None:
        raise no_stack(stack.name.name)
    return found
