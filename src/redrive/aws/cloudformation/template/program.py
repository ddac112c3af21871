"""Programs: templates that were read and checked, with the values of their parameters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redrive.aws.cloudformation.template.conditions import Conditions, check_rules
from redrive.aws.cloudformation.template.errors import format_error
from redrive.aws.cloudformation.template.parameters import ParameterDefinition
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
        self,
        ref: Callable[[str], Any],
        attribute: Callable[[str, str], Any],
        imported: Callable[[str], str],
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
    """Check a template with the values of its parameters.

    Raises:
        TemplateInvalid: It cannot be used with them.
    """
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
