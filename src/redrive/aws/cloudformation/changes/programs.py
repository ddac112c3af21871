"""Programs of stacks: their templates, read and checked with the values that the stack has."""

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.aws.cloudformation.changes.sources import Services, text_in_bucket
from redrive.aws.cloudformation.documents.history import EXPORT
from redrive.aws.cloudformation.documents.names import stack_arn
from redrive.aws.cloudformation.documents.records import TEMPLATE, Stack, StackSettings, template_key
from redrive.aws.cloudformation.serverless.transform import SERVERLESS, Translator, is_serverless
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.includes import (
    bucket_and_key_of,
    include_failure,
    locations_in,
    with_parts,
)
from redrive.aws.cloudformation.template.language_extensions import LANGUAGE_EXTENSIONS
from redrive.aws.cloudformation.template.parameters import (
    Given,
    ParameterDefinition,
    choose_values,
    read_parameters,
)
from redrive.aws.cloudformation.template.program import (
    TemplateProgram,
    make_program,
    read_template,
    values_of,
    without_loops,
)
from redrive.aws.cloudformation.template.reading import check_depth, read_body, read_part
from redrive.aws.cloudformation.template.scope import EvaluationScope, pseudo_parameters
from redrive.aws.cloudformation.template.sections import section, transforms_of
from redrive.aws.cloudformation.types.resource_type import Ask
from redrive.aws.cloudformation.types.table import KNOWN
from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import offload
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.model.names import ResourceName

TRANSFORMS: Final = (LANGUAGE_EXTENSIONS, SERVERLESS)
_PARTS_MAX: Final = 100  # objects that a template includes: each is a call
_FETCHED_AT_ONCE: Final = 10  # parameters of the store in one GetParameters


def program_of(
    source: Mapping[str, Any],
    name: ResourceName,
    stack: str,
    settings: StackSettings,
    known: Sequence[str] = KNOWN,
) -> TemplateProgram:
    """The program of a template for a stack.

    Args:
        source: The template, as it was read.
        name: The stack's.
        stack: Its id.
        settings: Whose parameters it has.
        known: The types of resources that it may have.

    Raises:
        TemplateInvalid: It cannot be used with them.
    """
    values = known_values(source, name, stack, settings)
    return make_program(read_template(source, values), values, known)


async def with_included(
    source: Mapping[str, Any], values: Mapping[str, Any], services: Services, call: Call
) -> dict[str, Any]:
    """A template with the parts that it includes from buckets, read with the rights of its caller.

    Args:
        source: The template, as it was read.
        values: Of parameters and pseudo parameters.
        services: S3 among them.
        call: The caller's.

    Raises:
        TemplateInvalid: A part cannot be read or is more than there may be, or another transform is asked for.
    """
    scope = EvaluationScope(values, section(source, "Mappings"), lambda _: False)
    locations = await offload(call.account, lambda: set(locations_in(source, scope)))
    parts: dict[str, Any] = {}
    if len(locations) > _PARTS_MAX:
        raise include_failure(f"A template includes at most {_PARTS_MAX} objects.")

    def read(text: str) -> Any:
        part = read_part(text)
        scope.spend_value(part)  # before the next is held in memory
        return part

    for location in sorted(locations):
        try:
            text = await text_in_bucket(services, call, *bucket_and_key_of(location))
        except AwsError as refusal:
            raise include_failure(refusal.message) from None
        parts[location] = await offload(call.account, functools.partial(read, text))

    def put_together() -> dict[str, Any]:
        whole: dict[str, Any] = with_parts(source, scope, parts)
        check_depth(whole)
        return whole

    return await offload(call.account, put_together)


async def expanded(
    source: Mapping[str, Any], name: ResourceName, stack: str, settings: StackSettings, translator: Translator
) -> Mapping[str, Any]:
    """A template with what other processes carry out of its transforms: that of serverless applications.

    Args:
        source: The template, as it was read.
        name: The stack's.
        stack: Its id.
        settings: Whose parameters it has.
        translator: Of serverless applications.

    Raises:
        TemplateInvalid: It is refused, or asks for a transform that there is not.
    """
    unknown = [item for item in transforms_of(source) if item not in TRANSFORMS]
    if unknown:
        raise TemplateInvalid(f"No transform named {unknown[0]} found.")
    if not is_serverless(source):
        return source
    written = await offload(
        name.account, lambda: without_loops(source, known_values(source, name, stack, settings)), patient=True
    )
    texts = {**settings.parameters, **settings.resolved}
    return await translator.expanded(written, texts, name.region)


def known_values(
    source: Mapping[str, Any], name: ResourceName, stack: str, settings: StackSettings
) -> dict[str, Any]:
    """The values of parameters and pseudo parameters."""
    declared = read_parameters(section(source, "Parameters"))
    texts = {**settings.parameters, **settings.resolved}
    pseudo = pseudo_parameters(
        name.account, name.region, name.name, stack_arn(name, stack), list(settings.topics)
    )
    return pseudo | values_of(declared, texts)


def processed(program: TemplateProgram, *, includes: bool) -> str:
    """The text of a template with its transforms carried out; empty where it has none.

    Args:
        program: Of the template.
        includes: Parts of it came from buckets: then the text has its keys in their order (recorded).
    """
    has_transforms = includes or bool(program.template.transforms)
    return json.dumps(program.template.source, sort_keys=includes) if has_transforms else ""


async def choose_parameters(
    declared: Mapping[str, ParameterDefinition], values: Given, previous: Mapping[str, str], ask: Ask
) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of parameters, and the values of those that name a parameter of the store.

    Raises:
        TemplateInvalid: One has no value, or may not have this one.
    """
    texts = choose_values(declared, values, previous)
    stored = {name: texts[name] for name, parameter in declared.items() if parameter.stored_type}
    stored_values = await _stored_values(sorted(set(stored.values())), ask)
    lost = [path for path in stored.values() if path not in stored_values]
    if lost:
        text = f"Unable to fetch parameters [{','.join(dict.fromkeys(lost))}]"
        raise TemplateInvalid(f"{text} from parameter store for this account.")
    return texts, {name: stored_values[path] for name, path in stored.items()}


async def _stored_values(paths: list[str], ask: Ask) -> dict[str, str]:
    values: dict[str, str] = {}
    for at in range(0, len(paths), _FETCHED_AT_ONCE):
        try:
            answer = await ask("ssm", "GetParameters", Names=paths[at : at + _FETCHED_AT_ONCE])
        except AwsError:
            return values
        values |= {parameter["Name"]: parameter["Value"] for parameter in answer.get("Parameters") or ()}
    return values


class Programs:
    """Reads what stacks were given."""

    def __init__(self, engine: Engine) -> None:
        self._documents = engine.resources.documents

    async def source(self, stack: Stack, template: str) -> dict[str, Any]:
        """A template of a stack, with its transforms carried out.

        Raises:
            TemplateInvalid: It cannot be read (any more).
        """
        template_text = await self._documents.get(TEMPLATE, template_key(stack, template))
        text = "" if template_text is None else template_text.processed or template_text.body
        return await offload(stack.name.account, lambda: read_body(text), patient=True)

    async def body(self, stack: Stack, template: str) -> str:
        """The text of a template of a stack, as it was given."""
        template_text = await self._documents.get(TEMPLATE, template_key(stack, template))
        return "" if template_text is None else template_text.body

    async def load(self, stack: Stack, settings: StackSettings) -> TemplateProgram:
        """The program of a stack with some settings."""
        source = await self.source(stack, settings.template)
        work = functools.partial(program_of, source, stack.name, stack.id, settings)
        return await offload(stack.name.account, work, patient=True)

    async def exports(self, name: ResourceName) -> dict[str, str]:
        """The values of an account's exports in a region, by name."""
        exports = await self._documents.find(EXPORT, f"{name.account}/{name.region}/")
        return {export.name: export.value for export in exports}
