"""Programs: templates read and checked with the values of their parameters, their conditions and rules evaluated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import TemplateInvalid, format_error, template_error
from redrive.aws.cloudformation.template.functions import evaluate, function_name, truth
from redrive.aws.cloudformation.template.parameters import ParameterDefinition, text_of
from redrive.aws.cloudformation.template.references import active, check_functions, dependencies
from redrive.aws.cloudformation.template.scope import STEPS_MAX, EvaluationScope
from redrive.aws.cloudformation.template.sections import (
    OutputDefinition,
    ResourceDefinition,
    Template,
    read_sections,
    section,
    transforms_of,
)
from redrive.aws.cloudformation.template.transforms import (
    LANGUAGE_EXTENSIONS,
    SECTIONS,
    simplify,
    written_out,
)
from redrive.model.budget import Budget


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
        """Evaluate all of them; raises TemplateInvalid if one cannot be evaluated."""
        for name in self._declared:
            self.holds(name)


# ---- rules -----------------------------------------------------------------------------------------------------------


def check_rules(template: Template, values: Mapping[str, Any]) -> None:
    """Check the parameters by the rules of their template; raises TemplateInvalid."""
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


@dataclass(frozen=True, slots=True)
class TemplateProgram:
    """A template with all that its functions need but resources."""

    template: Template  # Its loops written out
    values: Mapping[str, Any]  # Values of parameters and pseudo parameters
    conditions: Conditions  # Conditions of the template
    resources: Mapping[str, ResourceDefinition]  # Those that are made, by logical id
    dependencies: Mapping[str, list[str]]  # For each of them those that must be there before
    # What the functions of all of them may still do together.
    budget: Budget = field(default_factory=lambda: Budget(STEPS_MAX), compare=False)

    def scope(
        self, ref: Callable[[str], Any], attribute: Callable[[str, str], Any], imported: Callable[[str], str]
    ) -> EvaluationScope:
        """The scope of its functions, with these resources and exports."""
        return EvaluationScope(
            values=self.values,
            mappings=self.template.mappings,
            condition=self.conditions.holds,
            resources=frozenset(self.resources),
            ref=ref,
            attribute=attribute,
            imported=imported,
            extended=is_extended(self.template.source),
            budget=self.budget,
        )

    @property
    def outputs(self) -> list[OutputDefinition]:
        """The outputs whose conditions hold."""
        outputs = self.template.outputs.values()
        return [out for out in outputs if not out.condition or self.conditions.holds(out.condition)]


def is_extended(source: Mapping[str, Any]) -> bool:
    """True if a template asks for the functions of `AWS::LanguageExtensions`."""
    return LANGUAGE_EXTENSIONS in transforms_of(source)


def as_processed(program: TemplateProgram) -> dict[str, Any]:
    """A template as it is shown once its transforms were carried out."""
    source = {name: part for name, part in program.template.source.items() if name != "Transform"}
    if not is_extended(program.template.source):
        return source
    hidden = {name for name, parameter in program.template.parameters.items() if parameter.hidden}
    scope = EvaluationScope(
        program.values, program.template.mappings, program.conditions.holds, extended=True
    )
    return {
        name: simplify(part, scope, hidden) if name in SECTIONS else part for name, part in source.items()
    }


def values_of(declared: Mapping[str, ParameterDefinition], texts: Mapping[str, str]) -> dict[str, Any]:
    """References to parameters, as far as these have a text."""
    return {name: parameter.value(texts[name]) for name, parameter in declared.items() if name in texts}


def read_template(source: Mapping[str, Any], values: Mapping[str, Any]) -> Template:
    """Read the sections of a template, its loops written out with the values of parameters that are known.

    Raises:
        TemplateInvalid: It is not built as templates are.
    """
    return read_sections(without_loops(source, values))


def without_loops(source: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a template with its loops written out, as it is where it may have none.

    Raises:
        TemplateInvalid: A loop is not built as loops are.
    """
    if not is_extended(source):
        return source
    return written_out(
        source, EvaluationScope(values, section(source, "Mappings"), lambda _: False, extended=True)
    )


def check_template(template: Template, values: Mapping[str, Any], known: Sequence[str]) -> None:
    """Check all that does not depend on the values of parameters.

    - `known`: the types of resources that are offered; `Custom::` stands for all that begin with it.

    Raises:
        TemplateInvalid: It cannot be used, whatever the values of its parameters.
    """
    scope = EvaluationScope(values, template.mappings, lambda _: False, extended=is_extended(template.source))
    check_functions(template, scope)
    dependencies(template, None)
    _check_types(template.resources, known)


def make_program(template: Template, values: Mapping[str, Any], known: Sequence[str]) -> TemplateProgram:
    """Check a template with the values of its parameters; raises TemplateInvalid if it cannot be used with them."""
    extended = is_extended(template.source)
    check_functions(template, EvaluationScope(values, template.mappings, lambda _: False, extended=extended))
    check_rules(template, values)
    conditions = Conditions(template, values, extended=extended)
    conditions.check_all()
    active_resources = active(template, conditions.holds)
    _check_types(active_resources, known)
    return TemplateProgram(
        template, values, conditions, active_resources, dependencies(template, conditions.holds)
    )


def _check_types(resources: Mapping[str, ResourceDefinition], known: Sequence[str]) -> None:
    strange = dict.fromkeys(
        resource.type for resource in resources.values() if not _is_known(resource.type, known)
    )
    if strange:
        raise format_error(
            f"Unrecognized resource types: [{', '.join(strange)}]."
            f" Supported types are: {', '.join(known)}{_advice(strange)}"
        )


def _advice(strange: Iterable[str]) -> str:
    """Advice on types that a setting of the server enables."""
    functions = any(kind.startswith("AWS::Lambda::") for kind in strange)
    return (
        ". AWS::Lambda types are supported if the server is started with --functions on" if functions else ""
    )


def _is_known(kind: str, known: Sequence[str]) -> bool:
    return kind in known or any(name.endswith("::") and kind.startswith(name) for name in known)
