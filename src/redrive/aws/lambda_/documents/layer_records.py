"""Documents of layers: one that counts a layer's versions, and one for each version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import invalid
from redrive.aws.lambda_.documents.records import FunctionPolicy, LayerUse
from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName

_ARN_PARTS: Final = 7  # of a layer; a version's has one more
_DIGITS: Final = 10  # so that keys are in the order of the numbers


class LayerReference(NamedTuple):
    """A layer that a caller named, or one of its versions."""

    name: ResourceName  # Account, region and name
    number: int | None = None  # The version; None: the layer as a whole

    @property
    def arn(self) -> str:
        """The ARN of the layer, or of the version."""
        arn = f"arn:aws:lambda:{self.name.region}:{self.name.account}:layer:{self.name.name}"
        return arn if self.number is None else f"{arn}:{self.number}"


@dataclass(frozen=True, slots=True)
class LayerRecord(Document):
    """A layer: its name, and how many versions it ever had."""

    restored: ClassVar = {"name": ResourceName._make}

    name: ResourceName  # Account, region and name
    versions: int = 0  # How many were published; their numbers are never used again


def _policy(stored: Mapping[str, Any]) -> FunctionPolicy:
    return FunctionPolicy(stored["revision"], tuple(stored["statements"]))


@dataclass(frozen=True, slots=True)
class LayerVersion(Document):
    """One version of a layer."""

    restored: ClassVar = {"name": ResourceName._make, "policy": _policy}

    name: ResourceName  # The layer's account, region and name
    number: int  # From 1
    kept_as: str  # The name that its archive is kept under, which no other version has
    code: str  # SHA-256 of the archive, in base64
    code_bytes: int  # The size of the archive
    unpacked_bytes: int  # The size of what is in it
    created_at: int  # ms
    policy: FunctionPolicy  # Permissions for other accounts
    description: str = ""  # Free text
    license: str | None = None  # Free text; None: none was given
    runtimes: Sequence[str] | None = None  # Those that it says it is for; None: it does not say
    architectures: Sequence[str] | None = None  # Likewise

    @property
    def reference(self) -> LayerReference:
        """The name by which callers know it."""
        return LayerReference(self.name, self.number)

    @property
    def key(self) -> str:
        """The key of its document."""
        return layer_version_key(self.reference)

    @property
    def use(self) -> LayerUse:
        """The part of it that a function which uses it remembers."""
        return LayerUse(self.reference.arn, self.kept_as, self.code, self.code_bytes, self.unpacked_bytes)


LAYER: Final = DocumentKind.of("function_layer", LayerRecord)
LAYER_VERSION: Final = DocumentKind.of("function_layer_version", LayerVersion)


def layer_version_key(reference: LayerReference) -> str:
    """The key of a layer's version; those of one layer are in the order of their numbers."""
    return f"{reference.name.key}/{reference.number or 0:0{_DIGITS}d}"


def read_layer(call: Call, text: str, number: int | None = None) -> LayerReference:
    """The layer that a name or an ARN names, and the version, where the operation is about one.

    Raises:
        AwsError: A version cannot have this number.
    """
    if number is not None and number < 1:
        raise invalid("Layer Version Cannot be less than 1")
    parts = text.split(":")
    if len(parts) >= _ARN_PARTS:
        _, _, _, region, account, _, name, *_ = parts
        return LayerReference(ResourceName(account, region, name), number)
    return LayerReference(ResourceName(call.account, call.region, text), number)


def layer_of_arn(arn: str) -> LayerReference | None:
    """The version of a layer that a whole ARN names; None for any other text."""
    parts = arn.split(":")
    if len(parts) != _ARN_PARTS + 1 or parts[2] != "lambda" or parts[5] != "layer" or not parts[7].isdigit():
        return None
    return LayerReference(ResourceName(parts[4], parts[3], parts[6]), int(parts[7]))
