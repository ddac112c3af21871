"""Operations that describe and list stacks, their resources, events and exports."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import orjson

from redrive.aws.cloudformation.changes.programs import Programs
from redrive.aws.cloudformation.changes.values import StackValues, evaluated_or_raw
from redrive.aws.cloudformation.documents.errors import PAGES, invalid, no_described_stack
from redrive.aws.cloudformation.documents.history import EVENT, EXPORT, IMPORT, StackEvent, export_key
from redrive.aws.cloudformation.documents.lookup import find_stack, require_stack, stack_name
from redrive.aws.cloudformation.documents.records import (
    RESOURCE,
    STACK,
    Stack,
    StackResource,
    StackSettings,
    resource_key,
)
from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.parameters import MASK, read_parameters
from redrive.aws.cloudformation.template.sections import section
from redrive.aws.kit.call import Call
from redrive.aws.kit.java import hash_order
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

T = TypeVar("T")
DELETED: Final = "DELETE_COMPLETE"
_RESOURCES_MAX: Final = 100  # resources in one answer of DescribeStackResources


class StackViews:
    """Describes and lists stacks, their resources and their events."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._programs = Programs(engine)

    # ---- stacks ------------------------------------------------------------------------------------------------------

    async def describe_stacks(self, call: Call, params: Structure) -> Structure:
        name = params.get("StackName")
        if name:
            stack = await find_stack(self._engine, call, name)
            if stack is None:
                raise no_described_stack(name)
            return {"Stacks": [await self._description(stack)]}
        stacks = [stack for stack in await self._stacks(call) if stack.status != "DELETE_COMPLETE"]
        page, token = PAGES.cut("DescribeStacks", params, stacks)
        return {"Stacks": [await self._description(stack) for stack in page], **token}

    async def list_stacks(self, call: Call, params: Structure) -> Structure:
        statuses: Sequence[str] = params.get("StackStatusFilter") or ()
        stacks = [stack for stack in await self._stacks(call) if not statuses or stack.status in statuses]
        return PAGES.of("ListStacks", params, stacks, _summary)

    async def _stacks(self, call: Call) -> list[Stack]:
        """The stacks of a caller, the latest first."""
        stacks = await self._engine.resources.documents.find(STACK, f"{call.account}/{call.region}/")
        return sorted(stacks, key=lambda stack: (stack.created_at, stack.id), reverse=True)

    async def _description(self, stack: Stack) -> Structure:
        description = _common_members(stack) | {
            "StackStatusReason": stack.reason or None,
            "Parameters": await self._parameters(stack) or None,
            "DisableRollback": stack.on_failure == "DO_NOTHING",
            "NotificationARNs": list(stack.target_settings.topics),
            "Capabilities": list(stack.target_settings.capabilities) or None,
            "Tags": [{"Key": key, "Value": value} for key, value in stack.target_settings.tags.items()],
            "EnableTerminationProtection": None if stack.status == DELETED else stack.protected,
            "RollbackConfiguration": dict(stack.target_settings.rollback),
            "Outputs": [_output(output) for output in stack.outputs] or None,
            # Without the change set if the stack was deleted, or its creation rolled back (recorded).
            "ChangeSetId": (stack.change_set or None) if stack.deleted_at is None else None,
            "RoleARN": stack.settings.role or None,
        }
        return _without_none(description)

    async def _parameters(self, stack: Stack) -> list[Structure]:
        return await parameter_descriptions(self._programs, stack, stack.target_settings)

    # ---- resources ---------------------------------------------------------------------------------------------------

    async def describe_stack_resources(self, call: Call, params: Structure) -> Structure:
        if not params.get("StackName"):
            raise invalid("StackName is a required parameter.")
        stack = await require_stack(self._engine, call, params["StackName"])
        logical_id = params.get("LogicalResourceId")
        resources = await self._resources(stack)
        selected_resources = [resource for resource in resources if logical_id in (None, resource.logical_id)]
        if logical_id and not selected_resources:
            raise _no_resource(logical_id, stack)
        descriptions = [
            _stack_members(stack) | _resource(resource, "Timestamp")
            for resource in selected_resources[:_RESOURCES_MAX]
        ]
        return {"StackResources": descriptions}

    async def describe_stack_resource(self, call: Call, params: Structure) -> Structure:
        stack = await find_stack(self._engine, call, params["StackName"])
        if stack is None:
            raise invalid(f"Stack '{params['StackName']}' does not exist")
        logical_id = params["LogicalResourceId"]
        resource = await self._engine.resources.documents.get(RESOURCE, resource_key(stack, logical_id))
        if resource is None:
            raise invalid(f"Resource {logical_id} does not exist for stack {stack.arn}")
        program = await self._programs.load(stack, stack.target_settings)
        values = StackValues(program, {each.logical_id: each for each in await self._resources(stack)}, {})
        metadata = {"Metadata": orjson.dumps(evaluated_or_raw(resource.metadata or {}, values)).decode()}
        description = _stack_members(stack) | _resource(resource, "LastUpdatedTimestamp") | metadata
        return {"StackResourceDetail": description}

    async def list_stack_resources(self, call: Call, params: Structure) -> Structure:
        stack = await require_stack(self._engine, call, params["StackName"])
        return PAGES.of(
            "ListStackResources",
            params,
            await self._resources(stack),
            lambda resource: _resource(resource, "LastUpdatedTimestamp"),
        )

    async def _resources(self, stack: Stack) -> list[StackResource]:
        return await self._engine.resources.documents.find(RESOURCE, f"{stack.key}/")

    # ---- events ------------------------------------------------------------------------------------------------------

    async def describe_stack_events(self, call: Call, params: Structure) -> Structure:
        if not params.get("StackName"):
            raise invalid("StackName is a required parameter.")
        stack = await require_stack(self._engine, call, params["StackName"])
        events = await self._engine.resources.documents.find(EVENT, f"{stack.key}/")
        return PAGES.of(
            "DescribeStackEvents", params, events[::-1], lambda event: _stack_members(stack) | _event(event)
        )


async def parameter_descriptions(
    programs: Programs, stack: Stack, settings: StackSettings
) -> list[Structure]:
    """The parameters of settings as answers describe them: values are masked where the template says NoEcho."""
    try:
        source = await programs.source(stack, settings.template)
        definitions = read_parameters(section(source, "Parameters"))
    except TemplateInvalid:
        return []
    descriptions = []
    for name in hash_order(settings.parameters):
        text = settings.parameters[name]
        is_hidden = name in definitions and definitions[name].hidden
        parameter = {"ParameterKey": name, "ParameterValue": MASK if is_hidden else text}
        if name in settings.resolved:
            parameter["ResolvedValue"] = MASK if is_hidden else settings.resolved[name]
        descriptions.append(parameter)
    return descriptions


def _common_members(stack: Stack) -> Structure:
    """The members of a stack that both its description and its summary have."""
    description: Structure = {
        "StackId": stack.arn,
        "StackName": stack.name.name,
        "CreationTime": stack.created_at,
        "StackStatus": stack.status,
        "DriftInformation": _drift(stack),
        "Description": stack.description or None,
        "LastUpdatedTime": stack.updated_at,
        "DeletionTime": stack.deleted_at,
        "ParentId": stack.parent or None,
        "RootId": stack.root or None,
    }
    return description


def _drift(stack: Stack) -> Structure:
    if not stack.drift:
        return {"StackDriftStatus": "NOT_CHECKED"}
    status, at = stack.drift
    return {"StackDriftStatus": status, "LastCheckTimestamp": at}


def _summary(stack: Stack) -> Structure:
    description = _common_members(stack) | {"StackStatusReason": stack.reason or None}
    description["TemplateDescription"] = description.pop("Description")
    return _without_none(description)


def _output(output: Any) -> Structure:
    description = {
        "OutputKey": output.name,
        "OutputValue": output.value,
        "Description": output.description or None,
        "ExportName": output.export or None,
    }
    return _without_none(description)


def _stack_members(stack: Stack) -> Structure:
    return {"StackId": stack.arn, "StackName": stack.name.name}


def _resource(resource: StackResource, timestamp: str) -> Structure:
    """A resource as answers have it; `timestamp` is the name of the member for its last change."""
    description: Structure = {
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id or None,
        "ResourceType": resource.type,
        timestamp: resource.updated_at,
        "ResourceStatus": resource.status,
        "ResourceStatusReason": resource.reason or None,
        "DriftInformation": {"StackResourceDriftStatus": resource.drift or "NOT_CHECKED"},
    }
    return _without_none(description)


def _event(event: StackEvent) -> Structure:
    description: Structure = {
        "EventId": event.id,
        "LogicalResourceId": event.logical_id,
        "PhysicalResourceId": event.physical_id,
        "ResourceType": event.type,
        "Timestamp": event.at,
        "ResourceStatus": event.status,
        "ResourceStatusReason": event.reason or None,
        "ResourceProperties": event.properties or None,
        "ClientRequestToken": event.token or None,
    }
    return _without_none(description)


def _no_resource(logical_id: str, stack: Stack) -> Exception:
    return invalid(f"Resource {logical_id} does not exist for stack {stack.name.name}")


def _without_none(description: Structure) -> Structure:
    return {name: value for name, value in description.items() if value is not None}


class ExportOperations:
    """Lists exports, and who uses them."""

    def __init__(self, engine: Engine) -> None:
        self._documents = engine.resources.documents

    async def list_exports(self, call: Call, params: Structure) -> Structure:
        exports = await self._documents.find(EXPORT, f"{call.account}/{call.region}/")
        page, token = PAGES.cut("ListExports", params, exports)
        items = []
        for export in page:
            stack = await self._documents.get(STACK, export.stack)
            owner = {} if stack is None else {"ExportingStackId": stack.arn}
            items.append({"Name": export.name, "Value": export.value, **owner})
        return {"Exports": items, **token}

    async def list_imports(self, call: Call, params: Structure) -> Structure:
        name = params["ExportName"]
        importers = await self._documents.find(IMPORT, f"{export_key(stack_name(call, ''), name)}/")
        if not importers:
            raise invalid(f"Export '{name}' is not imported by any stack.")
        return PAGES.of("ListImports", params, importers, lambda importer: importer.stack_name)
