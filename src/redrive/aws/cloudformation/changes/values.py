"""Values that the functions of a template refer to while its stack is created or updated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import re2

from redrive.aws.cloudformation.documents.records import StackResource
from redrive.aws.cloudformation.template.errors import NotYetKnown, TemplateInvalid
from redrive.aws.cloudformation.template.functions import evaluate, scalar
from redrive.aws.cloudformation.template.program import TemplateProgram
from redrive.aws.cloudformation.template.scope import EvaluationScope
from redrive.aws.cloudformation.template.sections import OutputDefinition, ResourceDefinition
from redrive.aws.cloudformation.types.calls import Ask
from redrive.aws.wire.errors import AwsError
from redrive.model.budget import Budget, OverBudgetError

_DYNAMIC: Final = re2.compile(r"\{\{resolve:([a-z-]+):([^{}]*)\}\}")
#: Of a template, as AWS has it; here of each of its resources. Each is a call and 8 KiB of text.
_DYNAMIC_MAX: Final = 60
_CREATED_STATUSES: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")


@dataclass(slots=True)
class StackValues:
    """The resources, parameters and exports that a stack's functions refer to."""

    program: TemplateProgram  # The stack's template
    resources: Mapping[str, StackResource]  # As they are now, by logical id
    exports: Mapping[str, str]  # Exports of the stack's account and region, by name
    imported: set[str] = field(default_factory=set)  # The names of the exports that were used

    @property
    def scope(self) -> EvaluationScope:
        """The scope of the template's functions."""
        return self.program.scope(self._ref, self._attribute, self._import)

    def properties(self, definition: ResourceDefinition) -> dict[str, Any]:
        """The properties of a resource that its template has, evaluated.

        Raises:
            TemplateInvalid: They cannot be evaluated.
            NotYetKnown: One depends on a resource that is not there yet.
        """
        values: dict[str, Any] = evaluate(definition.properties, self.scope)
        return values

    def output(self, output: OutputDefinition) -> tuple[str, str]:
        """The value of an output, and the name of its export; raises TemplateInvalid if it cannot be evaluated."""
        try:
            value = scalar(output.value, self.scope, "Output")
            export = "" if output.export is None else scalar(output.export, self.scope, "Export")
        except NotYetKnown as unknown:
            raise TemplateInvalid(f"[Error] /Outputs/{output.name}/Value: {unknown} is not there") from None
        except _NoSuchAttribute as absent:
            location = f"[Error] /Outputs/{output.name}/Value/Fn::GetAtt"
            text = f"Resource type {absent.type} does not support attribute {{{absent.attribute}}}."
            raise TemplateInvalid(f"{location}: {text}") from None
        return value, export

    def _created_resource(self, name: str) -> StackResource:
        resource = self.resources.get(name)
        if resource is None or resource.status not in _CREATED_STATUSES:
            raise NotYetKnown(name)
        return resource

    def _ref(self, name: str) -> str:
        resource = self._created_resource(name)
        if not resource.physical_id:
            raise NotYetKnown(name)
        return resource.physical_id

    def _attribute(self, name: str, attribute: str) -> Any:
        """An attribute of a resource; raises NotYetKnown if the resource is yet to be created."""
        resource = self._created_resource(name)
        if not resource.physical_id:
            raise NotYetKnown(name)
        value: Any = resource.attributes.get(attribute)
        if value is None:
            raise _NoSuchAttribute(resource.type, attribute)
        return value

    def _import(self, name: str) -> str:
        if name not in self.exports:
            raise TemplateInvalid(f"No export named {name} found.")
        self.imported.add(name)
        return self.exports[name]


def evaluated_or_raw(value: Any, values: StackValues) -> Any:
    """A value with its functions evaluated, or as the template has it if they cannot be."""
    try:
        return evaluate(value, values.scope)
    except (NotYetKnown, TemplateInvalid):
        return value


class _NoSuchAttribute(TemplateInvalid):
    def __init__(self, kind: str, attribute: str) -> None:
        super().__init__(f"Requested attribute {attribute} does not exist in schema for {kind}")
        self.type = kind
        self.attribute = attribute


async def resolve_references(value: Any, ask: Ask) -> Any:
    """Returns a value with its dynamic references replaced by their values, which are never stored.

    Raises:
        TemplateInvalid: One refers to a service or a parameter that is not there, or there are more than 60.
        AwsError: The service that it refers to refuses.
    """
    return await _resolve_in(value, ask, Budget(_DYNAMIC_MAX))


async def _resolve_in(value: Any, ask: Ask, budget: Budget) -> Any:
    """A value whose dynamic references (`{{resolve:ssm:name}}`) are resolved."""
    if isinstance(value, Mapping):
        return {key: await _resolve_in(child, ask, budget) for key, child in value.items()}
    if isinstance(value, list):
        return [await _resolve_in(child, ask, budget) for child in value]
    if isinstance(value, str) and "{{resolve:" in value:
        return await _resolve_in_text(value, ask, budget)
    return value


async def _resolve_in_text(text: str, ask: Ask, budget: Budget) -> str:
    parts, at = [], 0
    for match in _DYNAMIC.finditer(text):
        try:
            budget.spend()
        except OverBudgetError:
            raise TemplateInvalid(f"A resource has at most {_DYNAMIC_MAX} dynamic references.") from None
        parts += [text[at : match.start()], await _resolve(match[1], match[2], ask)]
        at = match.end()
    return "".join([*parts, text[at:]])


async def _resolve(service: str, name: str, ask: Ask) -> str:
    """The value of a dynamic reference; only those to the parameter store are offered."""
    if service not in ("ssm", "ssm-secure"):
        raise TemplateInvalid(f"Dynamic references to {service} are not offered by this server.")
    path, _, version = name.partition(":")
    try:
        answer = await ask(
            "ssm",
            "GetParameter",
            Name=f"{path}:{version}" if version else path,
            WithDecryption=service == "ssm-secure",
        )
    except AwsError as error:
        if error.code == "ParameterNotFound":
            raise TemplateInvalid(
                f"Parameters: [{service}:{name}] cannot be found in the parameter store"
            ) from None
        raise
    value: str = answer["Parameter"]["Value"]
    return value
