"""Scopes: what the functions of a template can refer to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from redrive.aws.cloudformation.template.errors import NotYetKnown, TemplateInvalid, template_error
from redrive.aws.kit.json_cursor import children_of
from redrive.model.budget import CHARS_PER_STEP, Budget, OverBudgetError

#: Of the functions of a template, for all of its resources and outputs together: 12.8 million characters.
STEPS_MAX: Final = 200_000
ZONES: Final = "abcdef"  # of a region, as `Fn::GetAZs` names them: three of them
ZONE_COUNT: Final = 3


class NoValue:
    """`AWS::NoValue`: removes the property that has it."""

    __slots__ = ()


NO_VALUE: Final = NoValue()
NO_VALUE_NAME: Final = "AWS::NoValue"


def _unknown(name: str, *_: str) -> NoReturn:
    raise NotYetKnown(name)


@dataclass(frozen=True, slots=True)
class EvaluationScope:
    """The values that references of a template can have."""

    values: Mapping[str, Any]  # Values of parameters and pseudo parameters
    mappings: Mapping[str, Any]  # Mappings of the template
    condition: Callable[[str], bool]  # Tells whether a condition holds
    resources: frozenset[str] = frozenset()  # The logical ids that can be referred to
    ref: Callable[[str], Any] = _unknown  # `Ref` of a resource
    attribute: Callable[[str, str], Any] = _unknown  # `Fn::GetAtt` of a resource
    export_value: Callable[[str], str] = _unknown  # `Fn::ImportValue` of an export
    extended: bool = False  # The template asks for `AWS::LanguageExtensions`
    budget: Budget = field(default_factory=lambda: Budget(STEPS_MAX))  # Remaining budget of its functions

    def spend(self, steps: int, chars: int = 0) -> None:
        """Pay for work before it is done: values looked at or created, and characters of text.

        Raises:
            TemplateInvalid: The functions of the template exceed their budget.
        """
        try:
            self.budget.spend(steps + chars // CHARS_PER_STEP)
        except OverBudgetError:
            raise template_error(
                f"its functions make more than {STEPS_MAX} values or {STEPS_MAX * CHARS_PER_STEP} characters."
            ) from None

    def spend_value(self, value: Any) -> None:
        """Pay (see `spend`) for a value that a function returns: a template may repeat it a thousand times."""
        self.spend(1, len(value) if isinstance(value, str) else 0)
        if isinstance(value, Mapping):
            self.spend(0, sum(map(len, value)))
        for child in children_of(value):
            self.spend_value(child)

    def reference(self, name: str) -> Any:
        """The value of `Ref`; raises TemplateInvalid if nothing has that name."""
        if name == NO_VALUE_NAME:
            return NO_VALUE
        if name in self.values:
            return self.values[name]
        if name in self.resources:
            return self.ref(name)
        raise unresolved_references([name], "Resources")


def pseudo_parameters(
    account: str, region: str, stack_name: str, stack_id: str, topics: list[str]
) -> dict[str, Any]:
    """The parameters that every template has, as `AWS::Region`, by name."""
    return {
        "AWS::AccountId": account,
        "AWS::Region": region,
        "AWS::Partition": "aws",
        "AWS::StackName": stack_name,
        "AWS::StackId": stack_id,
        "AWS::URLSuffix": "amazonaws.com",
        "AWS::NotificationARNs": topics,
    }


PSEUDO_PARAMETERS: Final = frozenset(pseudo_parameters("", "", "", "", [])) | {NO_VALUE_NAME}


def unresolved_references(names: list[str], block: str) -> TemplateInvalid:
    """The refusal of references that lead nowhere."""
    text = f"Unresolved resource dependencies [{', '.join(names)}] in the {block} block of the template"
    return TemplateInvalid(f"Template format error: {text}" if block == "Resources" else text)
