"""Conditions and rules of a template: what holds for a stack's parameters."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import TemplateInvalid, template_error
from redrive.aws.cloudformation.template.functions import evaluate, function_name, truth
from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.template.scope import EvaluationScope
from redrive.aws.cloudformation.template.sections import Template


class Conditions:
    """The conditions of a template, each evaluated when it is first asked for."""

    def __init__(self, template: Template, values: Mapping[str, Any], *, extended: bool) -> None:
        self._declared = template.conditions
        self._known: dict[str, bool] = {}
        self._open: list[str] = []
        self._scope = EvaluationScope(values, template.mappings, self.holds, extended=extended)

    def holds(self, name: str) -> bool:
        """Returns whether a condition holds.

        Raises:
            TemplateInvalid: There is no such condition, or it depends on itself.
        """
        if name in self._known:
            return self._known[name]
        if name not in self._declared:
            raise template_error(f"unresolved condition dependency {name} in Fn::If")
        if name in self._open:
            raise TemplateInvalid(f"Circular dependency between conditions: [{', '.join(self._open)}]")
        self._open.append(name)
        self._known[name] = truth(self._declared[name], self._scope)
        self._open.pop()
        return self._known[name]

    def check_all(self) -> None:
        """Evaluate all of them.

        Raises:
            TemplateInvalid: One cannot be evaluated.
        """
        for name in self._declared:
            self.holds(name)


# ---- rules -----------------------------------------------------------------------------------------------------------


def check_rules(template: Template, values: Mapping[str, Any]) -> None:
    """Check the parameters by the rules of their template.

    Raises:
        TemplateInvalid: One does not hold.
    """
    scope = EvaluationScope(values, template.mappings, lambda _: False)
    for name, rule in template.rules.items():
        condition = rule.get("RuleCondition")
        if condition is not None and not _asserted(condition, template, scope):
            continue
        assertions = rule.get("Assertions")
        if not isinstance(assertions, list) or not assertions:
            raise template_error(f"Rule {name} must have Assertions.")
        for assertion in assertions:
            _check_assertion(name, assertion, template, scope)


def _check_assertion(name: str, assertion: Any, template: Template, scope: EvaluationScope) -> None:
    if not isinstance(assertion, Mapping) or "Assert" not in assertion:
        raise template_error(f"Rule {name}: every assertion must have an Assert.")
    if not _asserted(assertion["Assert"], template, scope):
        message = assertion.get("AssertDescription") or "the parameters do not satisfy its assertion"
        raise TemplateInvalid(f"Template validation error: Rule {name}: {message}")


def _asserted(value: Any, template: Template, scope: EvaluationScope) -> bool:
    name = function_name(value)
    if name in _COMBINED:
        operands = value[name] if isinstance(value[name], list) else []
        return _COMBINED[name]([_asserted(operand, template, scope) for operand in operands])
    if name in _OF_RULES:
        match value[name]:
            case [first, second]:
                return _OF_RULES[name](_values(first, template, scope), _values(second, template, scope))
        raise template_error(f"{name} requires a list argument with two elements")
    return truth(value, scope)


def _values(value: Any, template: Template, scope: EvaluationScope) -> list[str]:
    """The values of an operand of a rule's function."""
    match value:
        case {"Fn::RefAll": str(kind)}:
            values: Any = [scope.values[p.name] for p in template.parameters.values() if p.type == kind]
        case {"Fn::ValueOf": _} | {"Fn::ValueOfAll": _}:
            raise template_error(
                "Fn::ValueOf asks for resources of other services, of which nothing is known here."
            )
        case _:
            values = evaluate(value, scope)
    return [text_of(item) for item in (values if isinstance(values, list) else [values])]


def _contains(values: list[str], sought: list[str]) -> bool:
    return all(item in values for item in sought)


def _each_equals(values: list[str], sought: list[str]) -> bool:
    return all(item == sought[0] for item in values) if sought else False


def _each_in(values: list[str], among: list[str]) -> bool:
    return all(item in among for item in values)


_COMBINED: Final[Mapping[str, Callable[[list[bool]], bool]]] = {
    "Fn::And": all,
    "Fn::Or": any,
    "Fn::Not": lambda operands: not any(operands),
}
_OF_RULES: Final[Mapping[str, Callable[[list[str], list[str]], bool]]] = {
    "Fn::Contains": _contains,
    "Fn::EachMemberEquals": _each_equals,
    "Fn::EachMemberIn": _each_in,
}
