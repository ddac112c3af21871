"""Programs: templates read and checked with the values of their parameters, their conditions and rules evaluated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import TemplateInvalid, format_error, template_error
from redrive.aws.cloudformation.template.functions import evaluate, function_name, truth
from redrive.aws.cloudformation.template.parameters import ParameterDefinition, text_of
from redrive.aws.cloudformation.template.references import (
    active_resources,
    check_functions,
    dependencies,
    references,
)
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
    write_out_loops,
)
from redrive.aws.kit.json_cursor import as_list
from redrive.model.budget import Budget


class Conditions:
    """The conditions of a template, each evaluated when it is first asked for."""

    def __init__(self, template: Template, values: Mapping[str, Any], *, extended: bool) -> None:
        self._definitions = template.conditions
        self._results: dict[str, bool] = {}
        self._path: list[str] = []
        self._scope = EvaluationScope(values, template.mappings, self.holds, extended=extended)

    def holds(self, name: str) -> bool:
        """Returns whether a condition holds; raises TemplateInvalid if it is unknown, or depends on itself."""
        if name in self._results:
            return self._results[name]
        if name not in self._definitions:
            raise template_error(f"unresolved condition dependency {name} in Fn::If")
        if name in self._path:
            raise TemplateInvalid(f"Circular dependency between conditions: [{', '.join(self._path)}]")
        self._path.append(name)
        self._results[name] = truth(self._definitions[name], self._scope)
        self._path.pop()
        return self._results[name]

    def check_all(self) -> None:
        """Evaluate all of them; raises TemplateInvalid if one cannot be evaluated."""
        for name in self._definitions:
            self.holds(name)


# ---- rules -----------------------------------------------------------------------------------------------------------


def check_rules(template: Template, values: Mapping[str, Any]) -> None:
    """Check the parameters by the rules of their template; raises TemplateInvalid if one is violated."""
    scope = EvaluationScope(values, template.mappings, condition=lambda _: False)
    for name, rule in template.rules.items():
        condition = rule.get("RuleCondition")
        if condition is not None and not _is_true(condition, template, scope):
            continue
        assertions = rule.get("Assertions")
        if not isinstance(assertions, list) or not assertions:
            raise template_error(f"Rule {name} must have Assertions.")
        for assertion in assertions:
            _check_assertion(name, assertion, template, scope)


def _check_assertion(name: str, assertion: Any, template: Template, scope: EvaluationScope) -> None:
    if not isinstance(assertion, Mapping) or "Assert" not in assertion:
        raise template_error(f"Rule {name}: every assertion must have an Assert.")
    if not _is_true(assertion["Assert"], template, scope):
        message = assertion.get("AssertDescription") or "the parameters do not satisfy its assertion"
        raise TemplateInvalid(f"Template validation error: Rule {name}: {message}")


def _is_true(value: Any, template: Template, scope: EvaluationScope) -> bool:
    """The truth of a rule's condition, which has functions of its own beside those of conditions."""
    name = function_name(value)
    if name in _CONNECTIVES:
        operands = value[name] if isinstance(value[name], list) else []
        return _CONNECTIVES[name]([_is_true(operand, template, scope) for operand in operands])
    if name in _RULE_FUNCTIONS:
        match value[name]:
            case [first, second]:
                return _RULE_FUNCTIONS[name](
                    _operand_values(first, template, scope), _operand_values(second, template, scope)
                )
        raise template_error(f"{name} requires a list argument with two elements")
    return truth(value, scope)


def _operand_values(value: Any, template: Template, scope: EvaluationScope) -> list[str]:
    """The values of an operand of a rule's function."""
    match value:
        case {"Fn::RefAll": str(kind)}:
            values: Any = [
                scope.values[each.name] for each in template.parameters.values() if each.type == kind
            ]
        case {"Fn::ValueOf": _} | {"Fn::ValueOfAll": _}:
            raise template_error(
                "Fn::ValueOf asks for resources of other services, of which nothing is known here."
            )
        case _:
            values = evaluate(value, scope)
    return [text_of(item) for item in as_list(values)]


def _contains(values: list[str], items: list[str]) -> bool:
    return all(item in values for item in items)


def _each_equals(values: list[str], items: list[str]) -> bool:
    """True if each value equals the first of the items; false if there is no item."""
    return bool(items) and all(value == items[0] for value in values)


def _each_in(values: list[str], items: list[str]) -> bool:
    return all(value in items for value in values)


_CONNECTIVES: Final[Mapping[str, Callable[[list[bool]], bool]]] = {
    "Fn::And": all,
    "Fn::Or": any,
    "Fn::Not": lambda operands: not any(operands),
}
_RULE_FUNCTIONS: Final[Mapping[str, Callable[[list[str], list[str]], bool]]] = {
    "Fn::Contains": _contains,
    "Fn::EachMemberEquals": _each_equals,
    "Fn::EachMemberIn": _each_in,
}


@dataclass(frozen=True, slots=True)
class TemplateProgram:
    """A template with all that its functions need except the values of resources."""

    template: Template  # Its loops written out
    values: Mapping[str, Any]  # Values of parameters and pseudo parameters
    conditions: Conditions  # Conditions of the template
    resources: Mapping[str, ResourceDefinition]  # Those whose conditions hold, by logical id
    dependencies: Mapping[str, list[str]]  # The resources that each of them depends on
    # The remaining budget of the functions of all of them.
    budget: Budget = field(default_factory=lambda: Budget(STEPS_MAX), compare=False)

    def scope(
        self,
        ref: Callable[[str], Any],
        attribute: Callable[[str, str], Any],
        export_value: Callable[[str], str],
    ) -> EvaluationScope:
        """The scope of its functions, with these resources and exports."""
        return EvaluationScope(
            values=self.values,
            mappings=self.template.mappings,
            condition=self.conditions.holds,
            resources=frozenset(self.resources),
            ref=ref,
            attribute=attribute,
            export_value=export_value,
            extended=is_extended(self.template.source),
            budget=self.budget,
        )

    def hidden_names(self, definition: ResourceDefinition) -> frozenset[str]:
        """The properties of a resource whose values depend on a parameter with NoEcho: nobody is shown them."""
        parameters = self.template.parameters
        return frozenset(
            name
            for name, value in definition.properties.items()
            if any(
                parameters[each].hidden
                for each in references(value, self.conditions.holds)
                if each in parameters
            )
        )

    @property
    def outputs(self) -> list[OutputDefinition]:
        """The outputs whose conditions hold."""
        outputs = self.template.outputs.values()
        return [each for each in outputs if not each.condition or self.conditions.holds(each.condition)]


def is_extended(source: Mapping[str, Any]) -> bool:
    """True if a template asks for the functions of `AWS::LanguageExtensions`."""
    return LANGUAGE_EXTENSIONS in transforms_of(source)


def as_processed(program: TemplateProgram) -> dict[str, Any]:
    """The template after its transforms, as callers get it: functions that need no resource are evaluated."""
    source = {name: part for name, part in program.template.source.items() if name != "Transform"}
    if not is_extended(program.template.source):
        return source
    hidden_names = {name for name, parameter in program.template.parameters.items() if parameter.hidden}
    scope = EvaluationScope(
        program.values, program.template.mappings, program.conditions.holds, extended=True
    )
    return {
        name: simplify(part, scope, hidden_names) if name in SECTIONS else part
        for name, part in source.items()
    }


def values_of(definitions: Mapping[str, ParameterDefinition], texts: Mapping[str, str]) -> dict[str, Any]:
    """The values of references to parameters, by name; those without a text are left out."""
    return {name: parameter.value(texts[name]) for name, parameter in definitions.items() if name in texts}


def read_template(source: Mapping[str, Any], values: Mapping[str, Any]) -> Template:
    """Read a template's sections, its loops written out; raises TemplateInvalid if one is malformed."""
    return read_sections(without_loops(source, values))


def without_loops(source: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A template with its loops written out, which only an extended one may have; raises TemplateInvalid."""
    if not is_extended(source):
        return source
    return write_out_loops(
        source, EvaluationScope(values, section(source, "Mappings"), lambda _: False, extended=True)
    )


def check_template(template: Template, values: Mapping[str, Any], known_types: Sequence[str]) -> None:
    """Check what does not depend on the values of parameters.

    - `known_types`: the types of resources that are offered; `Custom::` stands for all that begin with it.

    Raises:
        TemplateInvalid: It cannot be used, whatever the values of its parameters.
    """
    scope = EvaluationScope(values, template.mappings, lambda _: False, extended=is_extended(template.source))
    check_functions(template, scope)
    dependencies(template, None)
    _check_types(template.resources, known_types)


def make_program(
    template: Template, values: Mapping[str, Any], known_types: Sequence[str]
) -> TemplateProgram:
    """Check a template with the values of its parameters; raises TemplateInvalid if it cannot be used with them."""
    extended = is_extended(template.source)
    check_functions(template, EvaluationScope(values, template.mappings, lambda _: False, extended=extended))
    check_rules(template, values)
    conditions = Conditions(template, values, extended=extended)
    conditions.check_all()
    resources = active_resources(template, conditions.holds)
    _check_types(resources, known_types)
    return TemplateProgram(template, values, conditions, resources, dependencies(template, conditions.holds))


def _check_types(resources: Mapping[str, ResourceDefinition], known_types: Sequence[str]) -> None:
    unknown_types = dict.fromkeys(
        resource.type for resource in resources.values() if not _is_known(resource.type, known_types)
    )
    if unknown_types:
        raise format_error(
            f"Unrecognized resource types: [{', '.join(unknown_types)}]."
            f" Supported types are: {', '.join(known_types)}{_advice(unknown_types)}"
        )


def _advice(unknown_types: Iterable[str]) -> str:
    """Advice on types that a setting of the server enables."""
    if any(kind.startswith("AWS::Lambda::") for kind in unknown_types):
        return ". AWS::Lambda types are supported if the server is started with --functions on"
    return ""


def _is_known(kind: str, known_types: Sequence[str]) -> bool:
    return kind in known_types or any(name.endswith("::") and kind.startswith(name) for name in known_types)
