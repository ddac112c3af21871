"""Parts of deployments: a resource that a template names, what ends a deployment, and the changes that it would make."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redrive.azure.arm.deployment_scope import Loop
from redrive.azure.arm.template_language import TemplateError
from redrive.azure.wire.answers import AzureError, invalid

_SEGMENTS_MAX: Final = 12  # from the end of an id, that `dependsOn` may name it by
_DEPLOYMENTS: Final = "microsoft.resources/deployments"
_BODY: Final = ("location", "tags", "sku", "kind", "identity", "properties")


class DeploymentFailed(Exception):  # noqa: N818 - as Azure calls it
    """A resource was refused.

    Attributes:
        error: As Azure tells it.
    """

    def __init__(self, resource: str, error: AzureError) -> None:
        super().__init__(resource)
        self.error = {
            "code": "DeploymentFailed",
            "message": "At least one resource deployment operation failed. Please list deployment operations for"
            " details. Please see https://aka.ms/arm-deployment-operations for usage details.",
            "details": [{"code": error.code, "message": error.message, "target": resource}],
        }


@dataclass(slots=True)
class PlannedResource:
    """A resource of a template, of which a copy loop makes several."""

    id: str  # Its resource id
    type: str
    names: set[str]  # Names for `dependsOn`, in lower case
    document: Mapping[str, Any]  # As the template has it
    loop: Loop | None = None  # The round of the copy loop; None: it is not a copy
    is_done: bool = False  # Whether it was made, or is only referred to

    @property
    def body(self) -> dict[str, Any]:
        """The part of the document that is sent."""
        return {name: self.document[name] for name in _BODY if name in self.document}

    @property
    def is_deployment(self) -> bool:
        """True if it is a nested deployment."""
        return self.type.lower() == _DEPLOYMENTS


def unread_link(link: object) -> AzureError:
    """The refusal of a template that is elsewhere, in Azure's words: the server fetches nothing that a caller names."""
    uri = (link.get("uri") or link.get("id")) if isinstance(link, Mapping) else link
    return invalid(
        f"Unable to download deployment content from '{uri}'. Please see https://aka.ms/arm-deploy for usage details."
        " This server fetches no templates: send the template itself.",
        "InvalidContentLink",
    )


class NeededFirst(Exception):  # noqa: N818 - no failure
    """A resource whose expressions are about another one, which is not made yet.

    Attributes:
        resource: The other one.
    """

    def __init__(self, resource: PlannedResource) -> None:
        super().__init__(resource.id)
        self.resource = resource


def check_resource(resource: Any) -> None:
    """Refuse what is not a resource of a template.

    Raises:
        TemplateError: It lacks a type or a name, or one of its lists is not a list.
    """
    if not isinstance(resource, Mapping) or "type" not in resource or "name" not in resource:
        raise TemplateError("A resource of a template has a type and a name.")
    for name in ("dependsOn", "resources"):
        if not isinstance(resource.get(name) or [], list):
            raise TemplateError(f"The '{name}' of a resource must be a list.")


def nested_properties(resource: PlannedResource) -> Mapping[str, Any]:
    """The properties of a nested deployment; raises TemplateError if they, or their options, are not objects."""
    properties = resource.document.get("properties") or {}
    if not isinstance(properties, Mapping) or not isinstance(
        properties.get("expressionEvaluationOptions") or {}, Mapping
    ):
        raise TemplateError(f"The properties of the nested deployment '{resource.id}' must be objects.")
    return properties


def by_name(resources: Iterable[PlannedResource]) -> Mapping[str, Sequence[PlannedResource]]:
    """Resources by all that `dependsOn` may call them, in lower case: to compare each with each would take minutes."""
    resources_by_name: dict[str, list[PlannedResource]] = {}
    for resource in resources:
        segments = resource.id.lower().split("/")[-_SEGMENTS_MAX:]
        ends = {"/".join(segments[at:]) for at in range(len(segments))}
        for name in resource.names | ends:
            resources_by_name.setdefault(name, []).append(resource)
    return resources_by_name


def change_of(resource: str, before: Any, after: Mapping[str, Any]) -> dict[str, Any]:
    """The change of a resource that a template names; `before` is None for one that does not exist."""
    if before is None:
        return {"resourceId": resource, "changeType": "Create", "after": after}
    delta = list(_differences("", before, after))
    kind = "Modify" if delta else "NoChange"
    return {
        "resourceId": resource,
        "changeType": kind,
        "before": before,
        "after": {**before, **after},
        "delta": delta,
    }


def _differences(path: str, before: Any, after: Any) -> Iterator[dict[str, Any]]:
    """The differences that a template makes to a resource; members that the template leaves out stay."""
    for name, value in after.items():
        current = before.get(name) if isinstance(before, Mapping) else None
        member = f"{path}.{name}" if path else name
        if isinstance(value, Mapping) and isinstance(current, Mapping):
            yield from _differences(member, current, value)
        elif value != current and member not in ("id", "name", "type"):
            kind = "Create" if current is None else "Modify"
            yield {"path": member, "propertyChangeType": kind, "before": current, "after": value}
