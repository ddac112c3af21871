"""Documents of parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from redrive.engine.ports import DocumentKind
from redrive.model.document import Document

VERSIONS_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Parameter(Document):
    """A parameter."""

    restored: ClassVar = {"values": tuple}

    account: str  # Account that owns it
    region: str  # Region that it is in
    name: str  # As the caller spelled it; it may be a path
    type: str  # `String`, `StringList`, `SecureString`
    values: tuple[str, ...]  # Values of its versions, the latest last
    version: int  # The number of the latest
    modified_at: int  # When the latest was written (ms)
    description: str = ""  # Free text
    pattern: str = ""  # Regular expression that a value matches in full; empty: any value is valid
    data_type: str = "text"  # `DataType` of the request
    tags: Mapping[str, str] = field(default_factory=dict)  # By key

    def value_of(self, version: int) -> str | None:
        """The value of a version; None: there is none, or it is too old to be kept."""
        age = self.version - version
        return self.values[-1 - age] if 0 <= age < len(self.values) else None


PARAMETER: Final = DocumentKind.of("ssm_parameter", Parameter, secret=True)


def parameter_key(account: str, region: str, name: str) -> str:
    """The key of a parameter: by the slashes of their names, parameters of a path are next to each other."""
    return f"{account}/{region}/{name if name.startswith('/') else f'//{name}'}"


def plain_name(name: str) -> str:
    """The name in an ARN, or the name itself."""
    if not name.startswith("arn:"):
        return name
    resource = name.split(":", 5)[-1].removeprefix("parameter")
    return resource if resource.count("/") > 1 else resource.removeprefix("/")
