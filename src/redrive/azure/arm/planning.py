"""Parts of deployments: a resource that a template names, and what ends a deployment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.azure.arm.deployment_scope import Loop
from redrive.azure.wire.errors import AzureError, invalid

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
class Planned:
    """A resource of a template, of which a copy loop makes several.

    Attributes:
        id: Its resource id.
        type: Its type.
        names: What `dependsOn` may call it by, in lower case.
        document: As the template has it.
        loop: The round of the copy loop; None: it is no copy.
        done: Whether it was made, or is only referred to.
    """

    id: str
    type: str
    names: set[str]
    document: Mapping[str, Any]
    loop: Loop | None = None
    done: bool = False

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
    named = link.get("uri") or link.get("id") if isinstance(link, Mapping) else link
    return invalid(
        f"Unable to download deployment content from '{named}'. Please see https://aka.ms/arm-deploy for usage details."
        " This server fetches no templates: send the template itself.",
        "InvalidContentLink",
    )
