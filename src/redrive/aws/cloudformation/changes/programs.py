"""Programs of stacks: templates from the request or a bucket, read and checked with the parameters of the stack."""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.cloudformation.documents.history import EXPORT
from redrive.aws.cloudformation.documents.records import (
    TEMPLATE,
    Stack,
    StackSettings,
    stack_arn,
    template_key,
)
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.parameters import (
    ParameterArguments,
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
from redrive.aws.cloudformation.template.transforms import (
    LANGUAGE_EXTENSIONS,
    SERVERLESS,
    Translator,
    bucket_and_key_of,
    include_failure,
    is_serverless,
    locations_in,
    with_parts,
)
from redrive.aws.cloudformation.types.calls import Ask
from redrive.aws.cloudformation.types.table import KNOWN, offered_types
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import offload
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.names import ResourceName


@dataclass(frozen=True)
class Services:
    """The services of this server, for stacks."""

    calls: InnerCalls  # Calls their operations
    offered: Mapping[str, Any]  # The operations of each, by botocore's name of the service
    base_url: str  # Prefix of this server's URLs
    identities: Identities  # Users and roles that change stacks
    translator: Translator = field(default_factory=Translator)  # Translates serverless application templates

    @cached_property
    def roles(self) -> ServiceRoles:
        """The roles that stacks act as."""
        return ServiceRoles(self.identities, "cloudformation", "AWSCloudFormation", _role_refusal)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The resource types that can be made."""
        return offered_types(self.offered)

    def ask_for(self, stack: Stack) -> Ask:
        """Returns a caller of operations with the rights of the stack's role, or else of its last user."""

        async def ask(service: str, operation: str, *, in_region: str = "", **params: Any) -> Structure:
            if not await self.calls.has(service, operation):
                raise AwsError("UnknownOperation", f"This server does not offer {service} {operation}.")
            account, role = stack.name.account, stack.target_settings.role
            if role:
                principal = await self.roles.role_principal(account, role, stack.name.region)
            else:
                principal = await self.identities.current_principal(account, stack.caller, stack.session)
            region = in_region or stack.name.region
            return await self.calls.call(service, operation, params, principal, region, of_stack=True)

        return ask


def _role_refusal(role: str) -> AwsError:
    return invalid(f"Role {role} is invalid or cannot be assumed")


# ---- sources of templates --------------------------------------------------------------------------------------

BODY_BYTES_MAX: Final = 51_200
OBJECT_BYTES_MAX: Final = 1_000_000
_IN_HOST: Final = re.compile(r"(.+)\.s3[.-][a-z0-9.-]*amazonaws\.com")


async def template_body(services: Services, call: Call, params: Structure) -> str:
    """The text of the template in a request, empty if it has none; raises AwsError if it cannot be read."""
    body: str | None = params.get("TemplateBody")
    url: str | None = params.get("TemplateURL")
    if body and url:
        raise invalid("Specify only one of the following parameters: TemplateBody, TemplateURL")
    if body:
        if len(body.encode()) > BODY_BYTES_MAX:
            raise invalid(
                f"1 validation error detected: Value '{body[:100]}…' at 'templateBody' failed to satisfy constraint:"
                f" Member must have length less than or equal to {BODY_BYTES_MAX}"
            )
        return body
    return await object_text(services, call, url) if url else ""


async def object_text(services: Services, call: Call, url: str) -> str:
    """The text of an object in a bucket of this server; raises AwsError if it cannot be read."""
    return await text_in_bucket(services, call, *bucket_and_key(url))


async def text_in_bucket(services: Services, call: Call, bucket: str, key: str) -> str:
    """The text of an object; see `object_text`."""
    try:
        answer = await services.calls.call(
            "s3", "GetObject", {"Bucket": bucket, "Key": key}, call.principal, call.region
        )
    except AwsError as error:
        raise invalid(f"S3 error: {error.message}") from None
    content: bytes = answer["Body"]
    if len(content) > OBJECT_BYTES_MAX:
        raise invalid(f"Template may not exceed {OBJECT_BYTES_MAX} bytes in size.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise invalid("Template format error: unsupported structure.") from None


def bucket_and_key(url: str) -> tuple[str, str]:
    """The bucket and the key that an address names, in whichever of S3's forms; raises AwsError if it names none."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise invalid("TemplateURL must be a supported URL.") from None
    path = unquote(parts.path).lstrip("/")
    if parts.scheme == "s3":
        raise invalid(f"S3 error: Domain name specified in {host} is not a valid S3 domain")
    if parts.scheme not in ("http", "https"):
        raise invalid("TemplateURL must be a supported URL.")
    bucket, _, key = path.partition("/")
    if match := _IN_HOST.fullmatch(host):
        bucket, key = match[1], path
    if not bucket or not key:
        raise invalid("TemplateURL must be a supported URL.")
    return bucket, key


TRANSFORMS: Final = (LANGUAGE_EXTENSIONS, SERVERLESS)
_PARTS_MAX: Final = 100  # objects that a template includes: each is a call
_PARAMETERS_PER_CALL: Final = 10  # of GetParameters


def program_of(
    source: Mapping[str, Any],
    name: ResourceName,
    stack: str,
    settings: StackSettings,
    known: Sequence[str] = KNOWN,
) -> TemplateProgram:
    """The program of a template for a stack with some settings; raises TemplateInvalid if these do not fit."""
    values = known_values(source, name, stack, settings)
    return make_program(read_template(source, values), values, known)


async def with_included_parts(
    source: Mapping[str, Any], values: Mapping[str, Any], services: Services, call: Call
) -> dict[str, Any]:
    """A template with the parts that it includes from buckets, read with the rights of its caller.

    Raises:
        TemplateInvalid: A part cannot be read or is too large, or another transform is named.
    """
    scope = EvaluationScope(values, section(source, "Mappings"), condition=lambda _: False)
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
        complete_template: dict[str, Any] = with_parts(source, scope, parts)
        check_depth(complete_template)
        return complete_template

    return await offload(call.account, put_together)


async def translate_template(
    source: Mapping[str, Any], name: ResourceName, stack: str, settings: StackSettings, translator: Translator
) -> Mapping[str, Any]:
    """Returns a template with its serverless resources translated; raises TemplateInvalid if it is refused."""
    unknown = [item for item in transforms_of(source) if item not in TRANSFORMS]
    if unknown:
        raise TemplateInvalid(f"No transform named {unknown[0]} found.")
    if not is_serverless(source):
        return source
    loop_free = await offload(
        name.account, lambda: without_loops(source, known_values(source, name, stack, settings)), patient=True
    )
    texts = {**settings.parameters, **settings.resolved}
    return await translator.translate(loop_free, texts, name.region)


def known_values(
    source: Mapping[str, Any], name: ResourceName, stack: str, settings: StackSettings
) -> dict[str, Any]:
    """The values of parameters and pseudo parameters, as far as settings have them."""
    definitions = read_parameters(section(source, "Parameters"))
    texts = {**settings.parameters, **settings.resolved}
    pseudo = pseudo_parameters(
        name.account, name.region, name.name, stack_arn(name, stack), list(settings.topics)
    )
    return pseudo | values_of(definitions, texts)


def processed_text(program: TemplateProgram, *, includes: bool) -> str:
    """The text of a template after its transforms; empty if it has none.

    - `includes`: parts of it came from buckets: then the text has its keys in alphabetical order (recorded).
    """
    has_transforms = includes or bool(program.template.transforms)
    return json.dumps(program.template.source, sort_keys=includes) if has_transforms else ""


async def choose_parameters(
    definitions: Mapping[str, ParameterDefinition],
    arguments: ParameterArguments,
    previous: Mapping[str, str],
    ask: Ask,
) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of parameters, and the stored values of those that name a parameter of the store.

    Raises:
        TemplateInvalid: One has no value, or may not have this one.
    """
    texts = choose_values(definitions, arguments, previous)
    paths = {name: texts[name] for name, parameter in definitions.items() if parameter.stored_type}
    stored_values = await _stored_values(sorted(set(paths.values())), ask)
    missing_paths = [path for path in paths.values() if path not in stored_values]
    if missing_paths:
        text = f"Unable to fetch parameters [{','.join(dict.fromkeys(missing_paths))}]"
        raise TemplateInvalid(f"{text} from parameter store for this account.")
    return texts, {name: stored_values[path] for name, path in paths.items()}


async def _stored_values(paths: list[str], ask: Ask) -> dict[str, str]:
    """The values of parameters in the parameter store, by name; without those that cannot be read."""
    values: dict[str, str] = {}
    for at in range(0, len(paths), _PARAMETERS_PER_CALL):
        try:
            answer = await ask("ssm", "GetParameters", Names=paths[at : at + _PARAMETERS_PER_CALL])
        except AwsError:  # the rest counts as missing, which the caller refuses
            return values
        values |= {parameter["Name"]: parameter["Value"] for parameter in answer.get("Parameters") or ()}
    return values


_NO_ECHO: Final = "NoEcho"


class Programs:
    """Reads the templates and the exports of stacks."""

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

    async def hidden_names(self, stack: Stack) -> Mapping[str, frozenset[str]]:
        """The properties that nobody is shown, by logical id, in the templates of a stack and of the change to it."""
        hidden: dict[str, frozenset[str]] = {}
        for settings in (stack.settings, stack.target_settings):
            if _NO_ECHO not in await self.body(stack, settings.template):
                continue
            try:
                program = await self.load(stack, settings)
            except TemplateInvalid:  # it gives no resource a value
                continue
            for name, definition in program.resources.items():
                hidden[name] = hidden.get(name, frozenset()) | program.hidden_names(definition)
        return hidden

    async def exports(self, name: ResourceName) -> dict[str, str]:
        """The values of an account's exports in a region, by name."""
        exports = await self._documents.find(EXPORT, f"{name.account}/{name.region}/")
        return {export.name: export.value for export in exports}
