"""Scopes: what the functions of a template can refer to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from redrive.aws.cloudformation.template.errors import NotYetKnown, TemplateInvalid

ZONES: Final = "abcdef"  # of a region, as `Fn::GetAZs` names them: three of them
ZONE_COUNT: Final = 3


class NoValue:
    """`AWS::NoValue`: takes away the property that has it."""

    __slots__ = ()


NO_VALUE: Final = NoValue()


def _unknown(name: str, *_: str) -> NoReturn:
    raise NotYetKnown(name)


@dataclass(frozen=True, slots=True)
class Scope:
    """All that a reference may lead to.

    Attributes:
        values: Of parameters and pseudo parameters.
        mappings: Of the template.
        condition: Whether one holds.
        resources: The logical ids that can be referred to.
        ref: Of a resource.
        attribute: Of a resource.
        imported: The value of an export.
        extended: The template asks for `AWS::LanguageExtensions`.
    """

    values: Mapping[str, Any]
    mappings: Mapping[str, Any]
    condition: Callable[[str], bool]
    resources: frozenset[str] = frozenset()
    ref: Callable[[str], Any] = _unknown
    attribute: Callable[[str, str], Any] = _unknown
    imported: Callable[[str], str] = _unknown
    extended: bool = False

    def reference(self, name: str) -> Any:
        """The value of `Ref`.

        Raises:
            TemplateInvalid: Nothing has that name.
        """
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self.values:
            return self.values[name]
        if name in self.resources:
            return self.ref(name)
        raise unresolved([name], "Resources")


def pseudo_parameters(
    account: str, region: str, stack_name: str, stack_id: str, topics: list[str]
) -> dict[str, Any]:
    """The parameters that every template has.

    Args:
        account: Whose stack it is.
        region: Where.
        stack_name: Its name.
        stack_id: Its ARN.
        topics: The ARNs that its events go to.
    """
    return {
        "AWS::AccountId": account,
        "AWS::Region": region,
        "AWS::Partition": "aws",
        "AWS::StackName": stack_name,
        "AWS::StackId": stack_id,
        "AWS::URLSuffix": "amazonaws.com",
        "AWS::NotificationARNs": topics,
    }


PSEUDO_PARAMETERS: Final = frozenset(pseudo_parameters("", "", "", "", [])) | {"AWS::NoValue"}


def unresolved(names: list[str], block: str) -> TemplateInvalid:
    """The refusal of references that lead nowhere."""
    text = f"Unresolved resource dependencies [{', '.join(names)}] in the {block} block of the template"
    return TemplateInvalid(f"Template format error: {text}" if block == "Resources" else text)
