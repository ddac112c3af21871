"""Documents of parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from redrive.engine.ports import DocumentKind
from redrive.model.document import Document

VERSIONS_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Parameter(Document):
    """A parameter.

    Attributes:
        account: Whose it is.
        region: Where.
        name: As its caller wrote it; it may be a path.
        type: `String`, `StringList`, `SecureString`.
        values: Of its versions, the latest last.
        version: The number of the latest.
        modified_at: When that was written (ms).
        description: Free text.
        pattern: All of a value matches it; empty: any does.
        data_type: As given.
        tags: By key.
    """

    restored: ClassVar = {"values": tuple}

    account: str
    region: str
    name: str
    type: str
    values: tuple[str, ...]
    version: int
    modified_at: int
    description: str = ""
    pattern: str = ""
    data_type: str = "text"
    tags: Mapping[str, str] = field(default_factory=dict)

    def value_of(self, version: int) -> str | None:
        """The value of a version; None: there is none, or it is too old to be kept."""
        age = self.version - version
        return self.values[-1 - age] if 0 <= age < len(self.values) else None


PARAMETER: Final = DocumentKind.of("ssm_parameter", Parameter, secret=True)


def parameter_key(account: str, region: str, name: str) -> str:
    """The key of a parameter: names may have slashes, with which those of a path are beside each other."""
    return f"{account}/{region}/{name if name.startswith('/') else f'//{name}'}"


def plain_name(name: str) -> str:
    """The name in an ARN, or the name itself."""
    if not name.startswith("arn:"):
        return name
    resource = name.split(":", 5)[-1].removeprefix("parameter")
    return resource if resource.count("/") > 1 else resource.removeprefix("/")
