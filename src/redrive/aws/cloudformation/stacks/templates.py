"""Operations on templates: validation, summaries, and the templates of stacks and change sets."""

import functools
import json
from typing import Any, Final

import orjson

from redrive.aws.cloudformation.changes.programs import Programs, Services, template_body, with_included_parts
from redrive.aws.cloudformation.documents.errors import invalid, no_described_stack
from redrive.aws.cloudformation.documents.lookup import find_change_set, find_stack, require_stack
from redrive.aws.cloudformation.documents.records import (
    REVIEW,
    STACK,
    TEMPLATE,
    Stack,
    StackSettings,
    template_key,
)
from redrive.aws.cloudformation.stacks.requests import needed_capabilities, permission_resources
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.parameters import ParameterDefinition, read_parameters
from redrive.aws.cloudformation.template.program import as_processed, check_template, read_template, values_of
from redrive.aws.cloudformation.template.reading import read_body
from redrive.aws.cloudformation.template.scope import pseudo_parameters
from redrive.aws.cloudformation.template.sections import Template, section
from redrive.aws.cloudformation.template.transforms import TYPES, is_including, is_serverless
from redrive.aws.kit.call import Call
from redrive.aws.kit.java import hash_order
from redrive.aws.kit.offloading import offload
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

#: The primary identifiers of types, as CloudFormation's registry publishes them.
_IDENTIFIERS: Final = {
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::IAM::Role": "RoleName",
    "AWS::KMS::Key": "KeyId",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SNS::Topic": "TopicArn",
    "AWS::SQS::Queue": "QueueUrl",
    "AWS::SSM::Parameter": "Name",
}


class TemplateOperations:
    """Checks templates, and shows those of stacks."""

    def __init__(self, engine: Engine, services: Services) -> None:
        self._engine = engine
        self._services = services
        self._programs = Programs(engine)

    async def validate_template(self, call: Call, params: Structure) -> Structure:
        body = await template_body(self._services, call, params)
        if not body:
            raise invalid("Either Template URL or Template Body must be specified.")
        try:
            template = await self._read_template(call, body)
        except TemplateInvalid as refusal:
            text = str(refusal)
            prefix = "Template contains errors.: " if text.startswith("Circular dependency") else ""
            raise invalid(prefix + text) from None
        return {
            "Parameters": [_parameter(parameter) for parameter in template.parameters.values()],
            **({"Description": template.description} if template.description else {}),
            **_capabilities(template),
            **({"DeclaredTransforms": list(template.transforms)} if template.transforms else {}),
        }

    async def get_template_summary(self, call: Call, params: Structure) -> Structure:
        if params.get("StackName"):
            stack = await require_stack(self._engine, call, params["StackName"])
            if stack.status == REVIEW:
                raise invalid("GetTemplateSummary cannot be called on REVIEW_IN_PROGRESS stacks.")
            body = await self._programs.body(stack, stack.settings.template)
        else:
            body = await template_body(self._services, call, params)
        if not body:
            raise invalid("Either Template URL or Template Body must be specified.")
        template = await self._read_template(call, body)
        types = list(dict.fromkeys(resource.type for resource in template.resources.values()))
        summary = {
            "Parameters": [
                _parameter_summary(template.parameters[name]) for name in hash_order(template.parameters)
            ],
            "ResourceTypes": types,
            "Version": "2010-09-09",
            "ResourceIdentifierSummaries": [_identifiers(template, kind) for kind in types],
            **_capabilities(template),
            **({"DeclaredTransforms": list(template.transforms)} if template.transforms else {}),
        }
        if template.description:
            summary["Description"] = template.description
        if template.metadata is not None:
            summary["Metadata"] = orjson.dumps(template.metadata).decode()
        return summary

    async def get_template(self, call: Call, params: Structure) -> Structure:
        name, change_set = params.get("StackName"), params.get("ChangeSetName")
        if change_set:
            if not name and not change_set.startswith("arn:"):
                raise invalid("StackName is a required parameter.")
            stored_change_set = await find_change_set(self._engine, call, change_set, name)
            stack = await self._engine.resources.documents.get(STACK, stored_change_set.stack)
            settings = stored_change_set.settings
        elif name:
            stack = await find_stack(self._engine, call, name)
            if stack is None:
                raise no_described_stack(name)
            settings = stack.settings
        else:
            raise invalid("StackName is required if ChangeSetName is not specified.")
        text = None
        if stack is not None:
            key = template_key(stack, settings.template)
            text = await self._engine.resources.documents.get(TEMPLATE, key)
        if stack is None or text is None:
            return {"TemplateBody": "", "StagesAvailable": []}
        body = text.body
        if params.get("TemplateStage") == "Processed" and text.processed:
            body = await self._processed_body(stack, settings)
        return {"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]}

    async def _processed_body(self, stack: Stack, settings: StackSettings) -> str:
        """The template of a stack with its transforms carried out."""
        program = await self._programs.load(stack, settings)
        work = functools.partial(as_processed, program)
        return json.dumps(await offload(stack.name.account, work))

    async def _read_template(self, call: Call, body: str) -> Template:
        """A template, checked as far as that is possible without its parameters."""
        source = await offload(call.account, lambda: read_body(body))
        definitions = read_parameters(section(source, "Parameters"))
        defaults = {
            name: parameter.default
            for name, parameter in definitions.items()
            if parameter.default is not None
        }
        values = pseudo_parameters(call.account, call.region, "", "", []) | values_of(definitions, defaults)
        if is_including(body):
            source = await with_included_parts(source, values, self._services, call)
        known_types = (*self._services.types, TYPES) if is_serverless(source) else self._services.types

        def check() -> Template:
            template = read_template(source, values)
            check_template(template, values, known_types)
            return template

        return await offload(call.account, check)


def _capabilities(template: Template) -> Structure:
    """The members of an answer about needed capabilities; none if the template needs none."""
    capabilities = needed_capabilities(template)
    if not capabilities:
        return {}
    types = dict.fromkeys(template.resources[name].type for name in permission_resources(template))
    reason = f"The following resource(s) require capabilities: [{', '.join(types)}]"
    return {"Capabilities": capabilities, **({"CapabilitiesReason": reason} if types else {})}


def _identifiers(template: Template, kind: str) -> Structure:
    """The resources of a type, and the property that identifies one in an import, where that is known."""
    names = [name for name, resource in template.resources.items() if resource.type == kind]
    summary: Structure = {"ResourceType": kind, "LogicalResourceIds": names}
    if kind in _IDENTIFIERS:
        summary["ResourceIdentifiers"] = [_IDENTIFIERS[kind]]
    return summary


def _parameter(parameter: ParameterDefinition) -> Structure:
    item: dict[str, Any] = {"ParameterKey": parameter.name, "NoEcho": parameter.hidden}
    if parameter.default is not None:
        item["DefaultValue"] = parameter.default
    if parameter.description:
        item["Description"] = parameter.description
    return item


def _parameter_summary(parameter: ParameterDefinition) -> Structure:
    constraints = {"AllowedValues": list(parameter.allowed_values)} if parameter.allowed_values else {}
    return _parameter(parameter) | {"ParameterType": parameter.type, "ParameterConstraints": constraints}
