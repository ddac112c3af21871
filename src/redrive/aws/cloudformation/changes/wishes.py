"""Wishes: a resource of a stack, as its type wants to know it."""

from redrive.aws.cloudformation.documents.records import Stack, StackResource
from redrive.aws.cloudformation.documents.words import StackSignals
from redrive.aws.cloudformation.types.resource_type import ResourceSpec


def wanted_of(
    stack: Stack, resource: StackResource, base_url: str, words: StackSignals, *, again: bool
) -> ResourceSpec:
    """A resource as its stack wants it.

    Args:
        stack: Whose it is.
        resource: As it is written down.
        base_url: What URLs of this server begin with.
        words: What it may wait for.
        again: It may be there already.
    """
    return ResourceSpec(
        stack=stack.name,
        stack_id=stack.arn,
        logical_id=resource.logical_id,
        type=resource.type,
        name=resource.name,
        physical_id=resource.physical_id,
        properties=resource.properties,
        words=words,
        tags=stack.aim.tags,
        base_url=base_url,
        again=again,
        change=stack.change,
        attributes=resource.attributes,
    )
