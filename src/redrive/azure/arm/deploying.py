"""One deployment carried out: its resources in the order in which they need each other, and its outputs."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.azure.arm.call import ArmCall
from redrive.azure.arm.deployment_scope import DeploymentScope, Loop, resource_id
from redrive.azure.arm.listings import Ask
from redrive.azure.arm.planning import (
    DeploymentFailed,
    NeededFirst,
    PlannedResource,
    by_name,
    change_of,
    check_resource,
    nested_properties,
    unread_link,
)
from redrive.azure.arm.template_language import RESOURCES_MAX, Needed, TemplateBudget, TemplateError
from redrive.azure.wire.answers import AzureError

_NESTED_MAX: Final = 5
_SYSTEM_TOPICS: Final = "microsoft.eventgrid/systemtopics"
#: What nobody can delete here: storage accounts, whose dead letters are to last.
_LASTING: Final = frozenset({"Microsoft.Storage/storageAccounts"})
_INCREMENTAL: Final = "incremental"
_COMPLETE: Final = "complete"
_ABSENT: Final = 404


class DeploymentRun:
    """Carries a deployment out.

    Attributes:
        steps: What was done, as lists of operations show it.
    """

    def __init__(
        self,
        call: ArmCall,
        properties: Mapping[str, Any],
        ask: Ask,
        scope: DeploymentScope | None = None,
        depth: int = 0,
        names: set[str] | None = None,
    ) -> None:
        self._call = call  # The caller's, about a deployment of a resource group
        self._ask = ask
        self._depth = depth
        self._properties = properties  # The deployment's: its template, its parameters, its mode
        self._template: Mapping[str, Any] = properties["template"]
        self._group = f"/subscriptions/{call.params['subscription']}/resourceGroups/{call.params['group']}"
        # `scope`: where expressions are evaluated; None: in the template's own
        self._has_own_scope = scope is None
        name = call.params.get("deployment", "")
        self._scope = scope or DeploymentScope(self._template, self._group, name, TemplateBudget())
        self._mode = str(properties.get("mode", _INCREMENTAL))
        self._resources: list[PlannedResource] = []
        self._by_name: Mapping[str, Sequence[PlannedResource]] = {}
        # `names`: the ids of what those name, in lower case, to which this one adds its own
        self._names = set() if names is None else names
        self.steps: list[dict[str, Any]] = []

    # ---- the plan --------------------------------------------------------------------------------------------------

    async def check(self) -> None:
        """Read the parameters and plan the resources; nothing is made.

        Raises:
            TemplateError: The template cannot be carried out.
        """
        if self._depth > _NESTED_MAX:
            raise TemplateError(f"Deployments are nested in at most {_NESTED_MAX} others.")
        self._check_mode()
        self._check_sections()
        if self._has_own_scope:
            self._scope.read_parameters(self._properties.get("parameters") or {})
        self._resources = await asyncio.to_thread(lambda: list(self._plan()))  # 800 names may take a second
        ids: set[str] = set()
        for resource in self._resources:
            if resource.id.lower() in ids:
                raise TemplateError(f"The resource '{resource.id}' is defined multiple times in a template.")
            ids.add(resource.id.lower())
        self._names |= ids
        self._by_name = by_name(self._resources)

    @property
    def _is_complete(self) -> bool:
        """True if the group is to have nothing else afterwards."""
        return self._mode.lower() == _COMPLETE

    def _check_mode(self) -> None:
        if self._mode.lower() not in (_INCREMENTAL, _COMPLETE):
            raise TemplateError(f"The mode '{self._mode}' is neither 'Incremental' nor 'Complete'.")
        if self._is_complete and self._depth:
            raise TemplateError("A nested deployment has the mode 'Incremental'.")

    def _check_sections(self) -> None:
        """Check that resources are a list or an object, and the other sections objects."""
        if not isinstance(self._template.get("resources") or [], list | Mapping):
            raise TemplateError("The template's 'resources' must be a list or an object.")
        for section in ("parameters", "variables", "outputs"):
            members = self._template.get(section) or {}
            is_object = isinstance(members, Mapping)
            definitions = members.values() if is_object and section != "variables" else ()
            if not is_object or not all(isinstance(definition, Mapping) for definition in definitions):
                raise TemplateError(f"The template's '{section}' must be an object of definitions.")

    def _plan(self) -> Iterator[PlannedResource]:
        """The resources of the template in its order, each taken from the budget."""
        resources: Any = self._template.get("resources") or []
        by_symbol = isinstance(resources, Mapping)  # of languageVersion 2.0
        for resource in self._expand(resources.items() if by_symbol else [("", each) for each in resources]):
            self._scope.budget.take_resource()
            yield resource

    def _expand(self, resources: Any, above: tuple[str, str] | None = None) -> Iterator[PlannedResource]:
        """The resources, each as often as its copy loop says; `above`: the type and name of the one they are in."""
        for symbol, resource in resources:
            check_resource(resource)
            copy = resource.get("copy")
            loops: list[Loop | None] = [None]
            if isinstance(copy, Mapping):
                loops = [(str(copy.get("name", "")), number) for number in range(self._scope.count(copy))]
            for loop in loops:
                yield from self._plan_one(resource, symbol, loop, above)

    def _plan_one(
        self, document: Mapping[str, Any], symbol: str, loop: Loop | None, above: tuple[str, str] | None
    ) -> Iterator[PlannedResource]:
        """A resource and those in it; `above`: the type and the name of the one that it is in."""
        if self._scope.value(document.get("condition", True), loop) is False:
            return
        expressions = {name: document[name] for name in ("name", "scope") if name in document}
        head = self._scope.value(expressions, loop)
        kind, name = str(document["type"]), str(head["name"])
        if above is not None:
            kind_above, name_above = above
            kind, name = f"{kind_above}/{kind}", f"{name_above}/{name}"
        group = self._group
        if scope := str(head.get("scope") or ""):
            group = scope if scope.startswith("/") else f"{self._group}/providers/{scope}"
        resource = PlannedResource(resource_id(group, kind, name), kind, {name.lower()}, document, loop)
        resource.names |= {resource.id.lower(), f"{kind}/{name}".lower(), symbol.lower()} - {""}
        if loop is not None:
            loop_name, _ = loop
            resource.names.add(loop_name.lower())
        resource.is_done = bool(document.get("existing"))
        yield resource
        children = [("", child) for child in document.get("resources") or ()]
        yield from self._expand(children, (kind, name))

    # ---- making ----------------------------------------------------------------------------------------------------

    async def carry_out(self) -> None:
        """Make every resource; in the mode Complete delete those of the group that the template does not name.

        Raises:
            DeploymentFailed: One was refused.
            TemplateError: One cannot be put together.
        """
        for resource in self._resources:
            if not resource.is_done:
                await self._make(resource)
        if self._is_complete:
            for other in await self._others():
                await self._delete(other)

    async def _others(self) -> list[PlannedResource]:
        """The resources of the group that can be deleted and the template does not name, system topics first."""
        resources = (await self._request("GET", f"{self._group}/resources", {}))["value"]
        others = [PlannedResource(each["id"], each["type"], set(), {}) for each in resources]
        return sorted(
            (each for each in others if each.id.lower() not in self._names and each.type not in _LASTING),
            key=lambda each: each.type.lower() != _SYSTEM_TOPICS,
        )

    async def _delete(self, other: PlannedResource) -> None:
        """Delete a resource that the template does not name, and note the step."""
        try:
            await self._request("DELETE", other.id, {})
        except AzureError as error:
            self._note(other, "Failed", "Delete")
            raise DeploymentFailed(other.id, error) from None
        self._note(other, "Succeeded", "Delete")

    async def _make(self, first: PlannedResource) -> None:
        """Make a resource behind all that it needs: without recursion, as 800 of them may need each other in turn."""
        waiting = {first.id: (first, self._dependencies(first))}
        while waiting:
            resource, dependencies = next(reversed(waiting.values()))
            needed = next((each for each in dependencies if not each.is_done), None)
            if needed is None:
                needed = await self._put(resource)
            if needed is None:
                del waiting[resource.id]
            elif needed.id in waiting:
                raise TemplateError(f"Circular dependency detected on resource: '{needed.id}'.")
            else:
                waiting[needed.id] = (needed, self._dependencies(needed))

    async def _put(self, resource: PlannedResource) -> PlannedResource | None:
        """Make a resource and return None; or return another that is needed first, with nothing made."""
        try:
            if resource.is_deployment:
                await self._nested(resource)
            else:
                body = await self._value(resource.body, resource.loop)
                self._scope.answers[resource.id.lower(), ""] = await self._request("PUT", resource.id, body)
        except NeededFirst as needed:
            return needed.resource
        except AzureError as error:
            self._note(resource, "Failed")
            raise DeploymentFailed(resource.id, error) from None
        resource.is_done = True
        self._note(resource, "Succeeded")
        return None

    def _dependencies(self, resource: PlannedResource) -> Iterator[PlannedResource]:
        """The resources that one depends on, each once, however many names say so."""
        names = self._scope.value(resource.document.get("dependsOn") or [], resource.loop)
        others: dict[str, PlannedResource] = {}
        for name in dict.fromkeys(str(each).lower() for each in names):
            others |= {each.id: each for each in self._by_name.get(name, ())}
        others.pop(resource.id, None)
        return iter(others.values())

    async def _value(self, document: Any, loop: Loop | None) -> Any:
        """A document's value; what its expressions are about is asked for before.

        Raises:
            NeededFirst: A resource that they are about has to be made before.
        """
        for _ in range(RESOURCES_MAX):
            try:
                return await asyncio.to_thread(self._scope.value, document, loop)
            except Needed as needed:
                reference = needed
            await self._learn(reference)
        raise TemplateError("The template refers to too many resources.")

    async def _learn(self, needed: Needed) -> None:
        """Find out what an expression asks for: of a resource of this template once it is made."""
        name = needed.resource.lower()
        target = next((each for each in self._resources if name in each.names), None)
        resource = needed.resource if target is None else target.id
        if not resource.startswith("/"):
            raise TemplateError(f"The resource '{needed.resource}' is not defined in the template.")
        if target is not None and not target.is_done:
            raise NeededFirst(target)
        answer = self._scope.answers.get((resource.lower(), needed.action))
        if answer is None:
            path = f"{resource}/{needed.action}" if needed.action else resource
            try:
                answer = await self._request("POST" if needed.action else "GET", path, {})
            except AzureError as error:
                raise DeploymentFailed(resource, error) from None
        self._scope.answers[name, needed.action] = answer

    async def _nested(self, resource: PlannedResource) -> None:
        """Carry a nested deployment out, within its own scope or that of this one."""
        properties = nested_properties(resource)
        parameters = {"parameters": properties.get("parameters") or {}}
        values = await self._value(parameters, resource.loop)
        inner = await self._inner(resource, values["parameters"])
        await inner.carry_out()
        self.steps += inner.steps
        outputs = {"outputs": await inner.outputs()}
        self._scope.answers[resource.id.lower(), ""] = {"id": resource.id, "properties": outputs}

    async def _inner(self, resource: PlannedResource, parameters: Any) -> "DeploymentRun":
        """A nested deployment, checked, with these parameters where it has its own scope."""
        properties = nested_properties(resource)
        if (link := properties.get("templateLink")) is not None:
            raise DeploymentFailed(resource.id, unread_link(link))
        if not isinstance(properties.get("template"), Mapping):
            raise TemplateError(f"The nested deployment '{resource.id}' has no template.")
        options = properties.get("expressionEvaluationOptions") or {}
        is_outer = str(options.get("scope", "outer")).lower() == "outer"
        template: Mapping[str, Any] = properties["template"]
        name = resource.id.rpartition("/")[2]
        if is_outer:
            scope = self._scope.nested(template)
        else:
            scope = DeploymentScope(template, self._group, name, self._scope.budget)
            scope.read_parameters(parameters)
        inner = DeploymentRun(self._call, properties, self._ask, scope, self._depth + 1, self._names)
        await inner.check()
        return inner

    async def _request(self, method: str, path: str, body: Any) -> Any:
        content = b"" if method == "GET" else orjson.dumps(body)
        query = "api-version=2024-03-01"
        call = replace(self._call.request, method=method, path=path, query=query, body=content, record=None)
        return orjson.loads((await self._ask(call)).body or b"{}")

    def _note(self, resource: PlannedResource, state: str, operation: str = "Create") -> None:
        """Note a step of the deployment; `operation`: Create or Delete."""
        target = {
            "id": resource.id,
            "resourceType": resource.type,
            "resourceName": resource.id.rpartition("/")[2],
        }
        self.steps.append(
            {
                "operationId": f"{len(self.steps):016X}",
                "properties": {
                    "provisioningOperation": operation,
                    "provisioningState": state,
                    "targetResource": target,
                },
            }
        )

    # ---- what is told ----------------------------------------------------------------------------------------------

    async def outputs(self) -> dict[str, Any]:
        """The outputs, with their types."""
        outputs = {}
        for name, output in (self._template.get("outputs") or {}).items():
            if await self._value(output.get("condition", True), None) is not False:
                value = await self._value({"value": output.get("value")}, None)
                outputs[name] = {"type": _title_case(str(output.get("type", "string"))), **value}
        return outputs

    def to_document(self, state: str) -> dict[str, Any]:
        """The deployment's properties as they are shown; secrets are not."""
        parameters = {}
        for name, declaration in self._scope.declarations.items():
            kind = str(declaration.get("type", ""))
            value = {"value": self._scope.parameters.get(name.lower())}
            parameters[name] = {
                "type": _title_case(kind),
                **({} if kind.lower().startswith("secure") else value),
            }
        return {
            "provisioningState": state,
            "mode": _title_case(self._mode.lower()),
            "parameters": parameters,
            "outputResources": [{"id": resource.id} for resource in self._resources if resource.is_done],
            "providers": [],
            "dependencies": [],
        }

    async def changes(self) -> list[dict[str, Any]]:
        """The changes that carrying it out would make, resource by resource; nested deployments are left out."""
        changes = []
        for resource in self._resources:
            if resource.is_done or resource.is_deployment:
                continue
            before = await self._current(resource.id)
            try:
                body = await asyncio.to_thread(self._scope.value, resource.body, resource.loop)
            except Needed:
                body = resource.body  # as it is written: what it is about is not there yet
            name = resource.id.rpartition("/")[2]
            changes.append(
                change_of(
                    resource.id, before, {"id": resource.id, "name": name, "type": resource.type, **body}
                )
            )
        if self._is_complete:
            await self.learn_names()
            for other in await self._others():
                before = await self._current(other.id)
                changes.append({"resourceId": other.id, "changeType": "Delete", "before": before})
        return changes

    async def learn_names(self) -> None:
        """Find out what nested deployments name, as far as that is known before anything is made."""
        for resource in self._resources:
            with contextlib.suppress(TemplateError, Needed, DeploymentFailed):
                if resource.is_deployment:
                    parameters = nested_properties(resource).get("parameters") or {}
                    inner = await self._inner(resource, self._scope.value(parameters, resource.loop))
                    await inner.learn_names()

    async def _current(self, resource: str) -> Any:
        """A resource as it is now; None: there is none."""
        try:
            return await self._request("GET", resource, {})
        except AzureError as error:
            if error.status == _ABSENT:
                return None
            raise


def _title_case(kind: str) -> str:
    words = {"securestring": "SecureString", "secureobject": "SecureObject"}
    return words.get(kind.lower(), kind[:1].upper() + kind[1:])
