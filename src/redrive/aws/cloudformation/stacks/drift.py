"""Drift: the properties of resources, as their services describe them, compared to those of the template."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import orjson

from redrive.aws.cloudformation.changes.programs import Programs, Services
from redrive.aws.cloudformation.changes.step_parts import spec_of
from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.cloudformation.documents.lookup import require_stack
from redrive.aws.cloudformation.documents.records import (
    RESOURCE,
    STACK,
    Stack,
    StackResource,
    resource_key,
    with_rights_of,
)
from redrive.aws.cloudformation.documents.signals import StackSignals
from redrive.aws.cloudformation.template.parameters import MASK, masked
from redrive.aws.cloudformation.types.calls import as_text
from redrive.aws.cloudformation.types.table import type_of
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft


class DriftOperations:
    """Detects drift while the caller waits, so that a detection is complete as soon as it has an id."""

    def __init__(self, engine: Engine, services: Services, signals: StackSignals) -> None:
        self._engine = engine
        self._services = services
        self._signals = signals
        self._programs = Programs(engine)

    async def detect_stack_drift(self, call: Call, params: Structure) -> Structure:
        stack = with_rights_of(await require_stack(self._engine, call, params["StackName"]), call)
        names = params.get("LogicalResourceIds")
        resources = await self._engine.resources.documents.find(RESOURCE, f"{stack.key}/")
        selected_resources = [resource for resource in resources if not names or resource.logical_id in names]
        drifts = [(resource, await self._drift_of(stack, resource)) for resource in selected_resources]
        has_drift = any(status in ("MODIFIED", "DELETED") for _, (status, _) in drifts)
        stack_status = "DRIFTED" if has_drift else "IN_SYNC"

        async def decide(draft: Draft) -> None:
            for resource, (status, _) in drifts:
                key = resource_key(stack, resource.logical_id)
                current = await draft.get(RESOURCE, key)
                if current is not None and current.drift != status:
                    draft.put(RESOURCE, key, replace(current, drift=status))
            current_stack = await draft.get(STACK, stack.key)
            if current_stack is not None:
                draft.put(STACK, stack.key, replace(current_stack, drift=(stack_status, call.now)))

        await self._engine.resources.write(decide)
        return {"StackDriftDetectionId": stack.id}

    async def describe_stack_drift_detection_status(self, call: Call, params: Structure) -> Structure:
        key = f"{call.account}/{call.region}/{params['StackDriftDetectionId']}"
        stack = await self._engine.resources.documents.get(STACK, key)
        if stack is None or not stack.drift:
            raise invalid(f"Drift detection {params['StackDriftDetectionId']} does not exist")
        status, detected_at = stack.drift
        resources = await self._engine.resources.documents.find(RESOURCE, f"{stack.key}/")
        return {
            "StackId": stack.arn,
            "StackDriftDetectionId": stack.id,
            "StackDriftStatus": status,
            "DetectionStatus": "DETECTION_COMPLETE",
            "DriftedStackResourceCount": sum(
                resource.drift in ("MODIFIED", "DELETED") for resource in resources
            ),
            "Timestamp": detected_at,
        }

    async def detect_stack_resource_drift(self, call: Call, params: Structure) -> Structure:
        stack = with_rights_of(await require_stack(self._engine, call, params["StackName"]), call)
        key = resource_key(stack, params["LogicalResourceId"])
        resource = await self._engine.resources.documents.get(RESOURCE, key)
        if resource is None:
            raise invalid(
                f"Resource {params['LogicalResourceId']} does not exist for stack {stack.name.name}"
            )
        status, actual = await self._drift_of(stack, resource)
        hidden_names = (await self._programs.hidden_names(stack)).get(resource.logical_id, ())
        return {"StackResourceDrift": _as_structure(stack, resource, status, actual, hidden_names, call.now)}

    async def describe_stack_resource_drifts(self, call: Call, params: Structure) -> Structure:
        stack = with_rights_of(await require_stack(self._engine, call, params["StackName"]), call)
        statuses = params.get("StackResourceDriftStatusFilters") or ()
        drifts, hidden_names = [], await self._programs.hidden_names(stack)
        for resource in await self._engine.resources.documents.find(RESOURCE, f"{stack.key}/"):
            if resource.drift and (not statuses or resource.drift in statuses):
                status, actual = await self._drift_of(stack, resource)
                hidden = hidden_names.get(resource.logical_id, ())
                drifts.append(_as_structure(stack, resource, status, actual, hidden, call.now))
        return {"StackResourceDrifts": drifts}

    async def _drift_of(self, stack: Stack, resource: StackResource) -> tuple[str, Mapping[str, Any]]:
        """The drift status of a resource, and its properties as its service describes them."""
        kind = type_of(resource.type)
        spec = spec_of(stack, resource, self._services.base_url, self._signals, may_exist=True)
        try:
            actual = await kind.read(self._services.ask_for(stack), spec)
        except (NotImplementedError, AwsError):
            return "NOT_CHECKED", {}
        if actual is None:
            return "DELETED", {}
        actual = kind.schema.typed_as_far_as_possible(actual)
        return ("MODIFIED" if _differences(resource.properties, actual) else "IN_SYNC"), actual


def _differences(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> list[Structure]:
    """The differences of the properties that the template sets and the service describes."""
    each_properties = (
        _value_differences(f"/{name}", expected[name], actual[name]) for name in expected if name in actual
    )
    return sorted(chain.from_iterable(each_properties), key=lambda each: each["PropertyPath"])


def _value_differences(path: str, expected: Any, actual: Any) -> Iterator[Structure]:
    """The differences between two values: of objects member by member, of all others as a whole (recorded)."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in expected.keys() | actual.keys():
            yield from _value_differences(f"{path}/{key}", expected.get(key), actual.get(key))
    elif expected != actual:
        kind = "NOT_EQUAL"
        if actual is None:
            kind = "REMOVE"
        elif expected is None:
            kind = "ADD"
        texts = {"ExpectedValue": _text(expected), "ActualValue": _text(actual)}
        yield {"PropertyPath": path, **texts, "DifferenceType": kind}


def _text(value: Any) -> str:
    return "null" if value is None else as_text(value)


def _masked_differences(differences: list[Structure], hidden_names: Collection[str]) -> list[Structure]:
    """Differences without the values of properties that nobody is shown."""
    values = {"ExpectedValue": MASK, "ActualValue": MASK}
    return [
        {**each, **values} if each["PropertyPath"].split("/")[1] in hidden_names else each
        for each in differences
    ]


def _as_structure(
    stack: Stack,
    resource: StackResource,
    status: str,
    actual: Mapping[str, Any],
    hidden_names: Collection[str],
    now: int,
) -> Structure:
    """The drift of a resource; what its service does not describe counts as the template sets it."""
    undescribed = type_of(resource.type).undescribed
    expected = {name: value for name, value in resource.properties.items() if name not in undescribed}
    described = {name: value for name, value in actual.items() if name in expected}
    return {
        "StackId": stack.arn,
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id,
        "ResourceType": resource.type,
        "ExpectedProperties": orjson.dumps(masked(expected, hidden_names)).decode(),
        "ActualProperties": orjson.dumps(masked({**expected, **described}, hidden_names)).decode(),
        "PropertyDifferences": _masked_differences(_differences(resource.properties, actual), hidden_names),
        "StackResourceDriftStatus": status,
        "Timestamp": now,
    }
