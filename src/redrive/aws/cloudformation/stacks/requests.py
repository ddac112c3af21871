"""Requests that change stacks: the settings that they leave as they were, capabilities, and what is refused."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from redrive.aws.cloudformation.documents.errors import TAGS, error, invalid
from redrive.aws.cloudformation.documents.records import REVIEW, Stack, StackSettings, is_in_progress
from redrive.aws.cloudformation.template.program import TemplateProgram
from redrive.aws.cloudformation.template.sections import Template
from redrive.aws.wire.arn import read_arn
from redrive.aws.wire.shapes import Structure

NAMED: Final = "CAPABILITY_NAMED_IAM"
IAM: Final = "CAPABILITY_IAM"
EXPAND: Final = "CAPABILITY_AUTO_EXPAND"

# Types of resources that change permissions, with the property by which a caller may choose a name.
_PERMISSION_TYPES: Final[Mapping[str, str]] = {
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::Policy": "",
    "AWS::IAM::RolePolicy": "",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::User": "UserName",
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::AccessKey": "",
    "AWS::IAM::UserToGroupAddition": "",
}


def permission_resources(template: Template) -> list[str]:
    """The logical ids of the resources that change permissions."""
    return [name for name, resource in template.resources.items() if resource.type in _PERMISSION_TYPES]


def needed_capabilities(template: Template) -> list[str]:
    """The capabilities that a template needs."""
    resources = [template.resources[name] for name in permission_resources(template)]
    capabilities = []
    if any(_PERMISSION_TYPES[resource.type] in resource.properties for resource in resources):
        capabilities.append(NAMED)
    elif resources:
        capabilities.append(IAM)
    return capabilities + ([EXPAND] if template.transforms else [])


def missing_capabilities(template: Template, capabilities: Sequence[str]) -> list[str]:
    """The capabilities that a template needs besides those that its caller acknowledges."""
    implied = {IAM} if NAMED in capabilities else set()
    return [name for name in needed_capabilities(template) if name not in {*capabilities, *implied}]


def tags_of(params: Structure, before: StackSettings) -> Mapping[str, str]:
    """The tags of a stack; raises AwsError if a key stands twice or is reserved, or there are too many."""
    tags = params.get("Tags")
    return before.tags if tags is None else TAGS.read(tags)


def capabilities_of(params: Structure, before: StackSettings) -> tuple[str, ...]:
    """The capabilities of a stack: an update that names none keeps them, a change set replaces them (recorded)."""
    capabilities: Sequence[str] | None = params.get("Capabilities")
    if capabilities is None and "ChangeSetName" not in params:
        return before.capabilities
    return tuple(capabilities or ())


def topics_of(params: Structure, before: StackSettings) -> tuple[str, ...]:
    """The ARNs of the topics of a stack."""
    topics: Sequence[str] | None = params.get("NotificationARNs")
    return before.topics if topics is None else tuple(topics)


def check_capabilities(template: Template, params: Structure, *, expands: bool) -> None:
    """Refuse a template, its transforms carried out, that needs capabilities which the caller does not acknowledge.

    Raises:
        AwsError: `InsufficientCapabilitiesException`.
    """
    capabilities = params.get("Capabilities") or ()
    missing = missing_capabilities(template, capabilities)
    if expands and EXPAND not in (*capabilities, *missing):
        missing.append(EXPAND)
    if missing:
        raise error("InsufficientCapabilitiesException", f"Requires capabilities : [{', '.join(missing)}]")


def check_triggers(params: Structure) -> None:
    """Refuse rollback triggers that are no alarms; raises AwsError (`ValidationError`)."""
    for trigger in (params.get("RollbackConfiguration") or {}).get("RollbackTriggers") or ():
        if trigger["Type"] not in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"):
            raise invalid("Rollback Trigger Type not supported")
        arn = read_arn(trigger["Arn"])
        if arn is None or arn.resource.partition(":")[0] != "alarm":
            raise invalid("RelativeId of a Rollback Trigger's ARN is incorrect")


def check_types(program: TemplateProgram, params: Structure) -> None:
    """Refuse resources of types that a caller does not allow; raises AwsError (`ValidationError`)."""
    patterns: Sequence[str] = params.get("ResourceTypes") or ["*"]
    for resource in program.resources.values():
        if not any(fnmatchcase(resource.type, pattern) for pattern in patterns):
            text = ", ".join(patterns)
            raise invalid(f"Resource type {resource.type} is not allowed by parameter ResourceTypes [{text}]")


def check_deletable(stack: Stack, params: Structure) -> None:
    """Refuse to delete a stack that is protected, or whose status does not allow the request.

    Raises:
        AwsError: `ValidationError`.
    """
    if stack.protected:
        raise invalid(f"Stack [{stack.name.name}] cannot be deleted while TerminationProtection is enabled")
    if params.get("RetainResources") and stack.status != "DELETE_FAILED":
        raise invalid(
            "Invalid operation on stack. RetainResources can only be specified for a stack in DELETE_FAILED state."
        )
    if is_in_progress(stack) and stack.status not in ("DELETE_IN_PROGRESS", "CREATE_IN_PROGRESS", REVIEW):
        raise invalid(f"Stack [{stack.name.name}] cannot be deleted while in status {stack.status}")
