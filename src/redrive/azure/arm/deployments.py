"""Deployments: resources of a group by an ARM template, made in the order in which they need each other.

    PUT, GET, HEAD, DELETE  …/resourceGroups/{group}/providers/Microsoft.Resources/deployments/{deployment}
    POST                    …/validate  …/whatIf        GET  …/operationStatuses/{deployment}  …/operations

A deployment asks for each resource through the resource manager's own routes, as its caller, and has ended when it is
answered; what it then shows is kept with its outputs.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from redrive.azure.arm.call import ArmCall, Verb
from redrive.azure.arm.deploying import DeploymentRun
from redrive.azure.arm.listings import Ask
from redrive.azure.arm.planning import DeploymentFailed, unread_link
from redrive.azure.arm.template_language import TemplateError
from redrive.azure.eventgrid.notation import timestamp
from redrive.azure.wire.answers import AzureError, empty_answer, invalid, json_answer, not_found
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Documents
from redrive.model.http import Response

Deployment = Mapping[str, Any]  # as it is shown

DEPLOYMENT: Final[DocumentKind[Deployment]] = DocumentKind("azure_deployment", dict, dict)
_ALL: Final = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Resources/deployments"
_ONE: Final = f"{_ALL}/{{deployment}}"
_SPLICED: Final = ", template:"
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_KEPT_MAX: Final = 800  # of a group, as at Azure
_NAME_CHAR: Final = re.compile(r"[A-Za-z0-9._-]")
_NAME_CHARS_MAX: Final = 64


class ArmDeploymentOperations:
    """The operations on deployments of a resource group (`redrive.azure.arm.service.Operations`)."""

    def __init__(self, documents: Documents, ask: Ask) -> None:
        """Ask for resources by this, and keep deployments among these documents."""
        self._documents = documents
        self._ask = ask

    @property
    def routes(self) -> Mapping[str, Verb]:
        """The handlers by method and path (`Operations.routes`)."""
        return {
            f"GET {_ALL}": self.list,
            f"PUT {_ONE}": self.put,
            f"GET {_ONE}": self.get,
            f"HEAD {_ONE}": self.exists,
            f"DELETE {_ONE}": self.delete,
            f"POST {_ONE}/validate": self.validate,
            f"POST {_ONE}/whatIf": self.what_if,
            f"GET {_ONE}/operationStatuses/{{status}}": self.status,
            f"GET {_ONE}/operations": self.steps,
        }

    async def put(self, call: ArmCall) -> Response:
        """Carry a deployment out; its end is told by the operation that the answer names."""
        _check_name(call.params["deployment"])
        properties = _properties(call)
        run = DeploymentRun(call, properties, self._ask)
        deployments = await self._documents.find(DEPLOYMENT, f"{_group_of(call)}/", "", _KEPT_MAX)
        if len(deployments) >= _KEPT_MAX and await self._documents.get(DEPLOYMENT, _key(call)) is None:
            raise invalid(
                f"The resource group has {_KEPT_MAX} deployments already.", "DeploymentQuotaExceeded"
            )
        try:
            await run.check()
            initial_properties = run.to_document("Accepted")
            await run.carry_out()
            outputs = await run.outputs()
        except TemplateError as fault:
            raise _invalid_template(fault) from None
        except DeploymentFailed as fault:
            outcome = {**run.to_document("Failed"), "error": fault.error}
        else:
            outcome = {**run.to_document("Succeeded"), "outputs": outputs}
        document = self._document(call, {**outcome, "timestamp": timestamp(call.now)}, run.steps)
        await self._documents.update_or_create(DEPLOYMENT, _key(call), document, lambda _: document)
        name = call.params["deployment"]
        url = f"{call.base_url}{quote(call.request.path)}/operationStatuses/{name}?api-version=2024-03-01"
        answer = json_answer({**_public(document), "properties": initial_properties}, HTTPStatus.CREATED)
        answer.headers = {**answer.headers, "Azure-AsyncOperation": url, "Retry-After": "0"}
        return answer

    def _document(self, call: ArmCall, properties: Mapping[str, Any], steps: list[Any]) -> Deployment:
        """The deployment as it is stored: as it is shown, and the steps that were taken."""
        path = call.request.path
        return {
            "id": path,
            "name": call.params["deployment"],
            "type": "Microsoft.Resources/deployments",
            "properties": properties,
            "steps": steps,
        }

    async def status(self, call: ArmCall) -> Response:
        """Tell how a deployment ended."""
        properties = (await self._get_existing(call))["properties"]
        has_failed = "error" in properties
        return json_answer(
            {
                "status": "Failed" if has_failed else "Succeeded",
                **({"error": properties["error"]} if has_failed else {}),
            }
        )

    async def get(self, call: ArmCall) -> Response:
        """Show a deployment with its outputs, or why it failed."""
        return json_answer(_public(await self._get_existing(call)))

    async def exists(self, call: ArmCall) -> Response:
        """Tell whether there is a deployment of that name."""
        deployment = await self._documents.get(DEPLOYMENT, _key(call))
        return empty_answer(HTTPStatus.NOT_FOUND if deployment is None else HTTPStatus.NO_CONTENT)

    async def delete(self, call: ArmCall) -> Response:
        """Forget a deployment; what it made stays."""
        await self._documents.remove(DEPLOYMENT, _key(call))
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def list(self, call: ArmCall) -> Response:
        """List the deployments of a group."""
        deployments = await self._documents.find(DEPLOYMENT, f"{_group_of(call)}/")
        return json_answer({"value": [_public(each) for each in deployments]})

    async def steps(self, call: ArmCall) -> Response:
        """List what a deployment did."""
        return json_answer({"value": (await self._get_existing(call))["steps"]})

    async def validate(self, call: ArmCall) -> Response:
        """Check a deployment as far as that takes no resource; nothing is made."""
        run = DeploymentRun(call, _properties(call), self._ask)
        try:
            await run.check()
        except TemplateError as fault:
            raise _invalid_template(fault) from None
        return json_answer({"id": call.request.path, "properties": run.to_document("Succeeded")})

    async def what_if(self, call: ArmCall) -> Response:
        """Tell what a deployment would change."""
        run = DeploymentRun(call, _properties(call), self._ask)
        try:
            await run.check()
            changes = await run.changes()
        except TemplateError as fault:
            raise _invalid_template(fault) from None
        return json_answer({"status": "Succeeded", "properties": {"changes": changes}})

    async def _get_existing(self, call: ArmCall) -> Deployment:
        """The deployment that the call's path names; raises AzureError if there is none."""
        deployment = await self._documents.get(DEPLOYMENT, _key(call))
        if deployment is None:
            name = call.params["deployment"]
            raise not_found(f"Deployment '{name}' could not be found.", "DeploymentNotFound")
        return deployment


def _check_name(name: str) -> None:
    """Check a deployment's name; raises AzureError."""
    unfit = [char for char in dict.fromkeys(name) if not _NAME_CHAR.fullmatch(char)]
    if unfit:
        raise invalid(
            f"The provided deployment name '{name}' has these invalid characters: '{','.join(unfit)}'. The name can"
            " only be a letter, digit, '-', '.' or '_'.",
            "InvalidDeployment",
        )
    if len(name) > _NAME_CHARS_MAX:
        raise invalid(
            f"The provided deployment name '{name}' has a length of '{len(name)}' which exceeds the maximum length"
            f" of '{_NAME_CHARS_MAX}'.",
            "InvalidDeployment",
        )


def _public(deployment: Deployment) -> dict[str, Any]:
    return {name: value for name, value in deployment.items() if name != "steps"}


def _group_of(call: ArmCall) -> str:
    return "/".join(call.account_and_group)


def _key(call: ArmCall) -> str:
    return f"{_group_of(call)}/{call.params['deployment'].lower()}"


def _as_json(body: bytes) -> bytes:
    """A deployment's document as JSON: the Azure CLI splices a template in as its author wrote it, comments and all."""
    text = body.decode(errors="replace")
    at = text.find(_SPLICED)
    if at < 0:
        return body
    template = _COMMENT.sub(lambda value: value[1] or "", text[at + len(_SPLICED) :])
    return f'{text[:at]}, "template":{template}'.encode()


def _properties(call: ArmCall) -> Mapping[str, Any]:
    """The properties of the deployment in the body, with its template; raises AzureError if there is none."""
    request = replace(call.request, body=_as_json(call.request.body))
    properties = replace(call, request=request).document.get("properties")
    if not isinstance(properties, dict):
        raise invalid("The deployment has no properties.", "InvalidRequestContent")
    if (link := properties.get("templateLink")) is not None:
        raise unread_link(link)
    if not isinstance(properties.get("template"), dict):
        raise invalid("The deployment has no template.", "InvalidTemplate")
    return properties


def _invalid_template(fault: TemplateError) -> AzureError:
    return invalid(f"Deployment template validation failed: '{fault}'.", "InvalidTemplate")
