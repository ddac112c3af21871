"""Capabilities: what a caller must agree to before a template may do it."""

from collections.abc import Mapping, Sequence
from typing import Final

from redrive.aws.cloudformation.template.sections import Template

NAMED: Final = "CAPABILITY_NAMED_IAM"
IAM: Final = "CAPABILITY_IAM"
EXPAND: Final = "CAPABILITY_AUTO_EXPAND"

# The property that names each, where a caller may choose a name.
_IDENTITIES: Final[Mapping[str, str]] = {
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


def identities(template: Template) -> list[str]:
    """The logical ids of what changes who may do what."""
    return [name for name, resource in template.resources.items() if resource.type in _IDENTITIES]


def needed(template: Template) -> list[str]:
    """The capabilities that a template needs."""
    resources = [template.resources[name] for name in identities(template)]
    capabilities = []
    if any(_IDENTITIES[resource.type] in resource.properties for resource in resources):
        capabilities.append(NAMED)
    elif resources:
        capabilities.append(IAM)
    return capabilities + ([EXPAND] if template.transforms else [])


def lacking(template: Template, agreed: Sequence[str]) -> list[str]:
    """The capabilities that a template needs, and its caller did not agree to."""
    implied = {IAM} if NAMED in agreed else set()
    return [name for name in needed(template) if name not in agreed and name not in implied]
