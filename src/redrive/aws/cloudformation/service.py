"""AWS CloudFormation: stacks, which are made of the resources of the other services."""

from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Final

from redrive.aws.cloudformation.documents.errors import translated
from redrive.aws.cloudformation.documents.history import (
    CHANGE_SET,
    DIALECT,
    EVENT,
    EXPORT,
    IMPORT,
    SIGNAL,
    TO_TOPIC,
)
from redrive.aws.cloudformation.documents.lookup import find_change_set, find_stack, stack_name
from redrive.aws.cloudformation.documents.records import (
    OPERATION,
    PATH,
    RESOURCE,
    STACK,
    STACK_NAME,
    TEMPLATE,
    stack_arn,
)
from redrive.aws.gateway.owed_calls import owed_profiles
from redrive.aws.kit.call import WHOLE_SERVICE, Call, ResourceScope, values_of
from redrive.aws.kit.service import AwsService, Outline
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.profiles import QUERY, Profile
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine


async def _scopes(engine: Engine, call: Call, _operation: str, params: Structure) -> Iterable[ResourceScope]:
    """Of an ARN the last part alone leads to a stack, so it is looked up."""
    return [ResourceScope(arn) async for arn in _stacks(engine, call, params)] or [WHOLE_SERVICE]


async def _stacks(engine: Engine, call: Call, params: Structure) -> AsyncIterator[str]:
    """The ARNs of the stacks that a request names; of an absent one the ARN that it could have."""
    if name := params.get("StackName"):
        stack = await find_stack(engine, call, name)
        absent_arn = name if name.startswith("arn:") else stack_arn(stack_name(call, name), "*")
        yield absent_arn if stack is None else stack.arn
    # The id of a drift detection is that of its stack.
    keys = [f"{call.account}/{call.region}/{id_}" for id_ in values_of(params, "StackDriftDetectionId")]
    if params.get("ChangeSetName", "").startswith("arn:"):
        with suppress(AwsError):  # there is no such change set, which the operation says better
            keys.append((await find_change_set(engine, call, params["ChangeSetName"], None)).stack)
    for key in keys:
        stack = await engine.resources.documents.get(STACK, key)
        if stack is not None:
            yield stack.arn


SERVICE: Final = AwsService(
    profile=Profile("cloudformation", "cloudformation", "2010-05-15", QUERY),
    title="CloudFormation",
    documents=(
        *(STACK, STACK_NAME, RESOURCE, TEMPLATE, OPERATION),
        *(EVENT, CHANGE_SET, EXPORT, IMPORT, SIGNAL),
    ),
    translated=translated,
    outline=Outline(paths=(PATH,), endpoints=(TO_TOPIC,), profiles=owed_profiles(DIALECT), wakes=(STACK,)),
    scopes=_scopes,
)
