"""Documents of functions: one for a function, and one for each of its versions and aliases."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final, Self

from redrive.aws.lambda_.documents.names import LATEST, arn_of
from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName

REQUEST_BYTES_MAX: Final = 6 * 1024 * 1024  # of an invocation that is answered


@dataclass(frozen=True, slots=True)
class LayerUse:
    """A layer's version that a function uses, which may be deleted meanwhile.

    Attributes:
        arn: Of the version.
        kept_as: The name that its archive is kept under.
        code: SHA-256 of the archive, in base64.
        code_bytes: The size of the archive.
        unpacked_bytes: The size of what is in it.
    """

    arn: str
    kept_as: str
    code: str
    code_bytes: int
    unpacked_bytes: int

    @property
    def archive(self) -> ResourceName:
        """The place of its archive, in the layer's account."""
        region, account = self.arn.split(":")[3:5]
        return ResourceName(account, region, self.kept_as)


def _layers(stored: Iterable[Mapping[str, Any]]) -> tuple[LayerUse, ...]:
    return tuple(LayerUse(**layer) for layer in stored)


@dataclass(frozen=True, slots=True)
class Configuration(Document):
    """One version of a function: all that running it takes, but its code.

    Attributes:
        name: Account, region and name.
        version: `$LATEST` or a number.
        revision: Another one with every change.
        modified_at: ms.
        role: The ARN of the execution role.
        runtime: As the caller named it.
        handler: In the runtime's own notation.
        code: SHA-256 of the archive, in base64.
        code_bytes: The size of the archive.
        description: Free text.
        timeout_seconds: An invocation is ended after this.
        memory_mb: A process that holds more is ended.
        storage_mb: Of its /tmp.
        variables: Its environment variables; None: it never had any, which answers tell from an empty map.
        dead_letter: The ARN that events go to which failed for good; empty: none.
        architecture: `x86_64` or `arm64`, as declared; what runs is this machine's.
        tracing: `PassThrough` or `Active`, handed back as given.
        logging: `LogFormat`, `LogGroup`, and with JSON `ApplicationLogLevel` and `SystemLogLevel`.
        network: `VpcConfig` as given, which changes nothing here.
        unpacked_bytes: The size of what is in the archive.
        layers: Those it is run with, later ones over earlier ones.
        kms_key: The ARN of the key that its variables are encrypted by; empty: the server's own.
        sealed_variables: They, as KMS encrypted them, in base64; `variables` is None then.
    """

    restored: ClassVar = {"name": ResourceName._make, "layers": _layers}

    name: ResourceName
    version: str
    revision: str
    modified_at: int
    role: str
    runtime: str
    handler: str
    code: str
    code_bytes: int
    description: str = ""
    timeout_seconds: int = 3
    memory_mb: int = 128
    storage_mb: int = 512
    variables: Mapping[str, str] | None = None
    dead_letter: str = ""
    architecture: str = "x86_64"
    tracing: str = "PassThrough"
    logging: Mapping[str, str] = field(default_factory=dict)
    network: Mapping[str, Any] | None = None
    unpacked_bytes: int = 0
    layers: tuple[LayerUse, ...] = ()
    kms_key: str = ""
    sealed_variables: str = ""

    @property
    def arn(self) -> str:
        """The version's own ARN; that of `$LATEST` is unqualified."""
        return arn_of(self.name, None if self.version == LATEST else self.version)


@dataclass(frozen=True, slots=True)
class FunctionPolicy:
    """The resource policy of a function, or of one of its versions or aliases.

    Attributes:
        revision: Another one with every change.
        statements: As `AddPermission` made them.
    """

    revision: str
    statements: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionUrl:
    """The URL of a function, or of one of its aliases.

    Attributes:
        id: The 32 characters that its host begins with.
        auth: `NONE` or `AWS_IAM`.
        created_at: ms.
        modified_at: ms.
        mode: `BUFFERED` or `RESPONSE_STREAM`.
        cors: Which pages' scripts may ask, as given; None: the function says so itself.
    """

    id: str
    auth: str
    created_at: int
    modified_at: int
    mode: str = "BUFFERED"
    cors: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FunctionRecord:
    """A function, but for its published versions and its aliases.

    Attributes:
        latest: Its version `$LATEST`.
        versions: How many were published; their numbers are never used again.
        configured: Its configuration was updated since, be it to what it was.
        reserved: How many invocations may run at once; None: as many as the account may.
        tags: Free labels.
        policies: By qualifier; the unqualified function's under the empty one.
        urls: Likewise.
    """

    latest: Configuration
    versions: int = 0
    configured: bool = False
    reserved: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, FunctionPolicy] = field(default_factory=dict)
    urls: Mapping[str, FunctionUrl] = field(default_factory=dict)

    @property
    def name(self) -> ResourceName:
        """Account, region and name."""
        return self.latest.name

    def to_document(self) -> dict[str, Any]:
        """The function as a JSON-ready document."""
        return asdict(self) | {"latest": self.latest.to_document()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        policies = {
            qualifier: FunctionPolicy(policy["revision"], tuple(policy["statements"]))
            for qualifier, policy in document["policies"].items()
        }
        urls = {qualifier: FunctionUrl(**url) for qualifier, url in document.get("urls", {}).items()}
        latest = Configuration.from_document(document["latest"])
        return cls(**{**document, "latest": latest, "policies": policies, "urls": urls})


@dataclass(frozen=True, slots=True)
class FunctionAlias(Document):
    """A name for a version of a function, or for two of them.

    Attributes:
        function: Whose.
        name: Of the alias.
        version: The version that it means.
        revision: Another one with every change.
        description: Free text.
        weights: The share of another version's invocations, by its number: one entry at most.
    """

    restored: ClassVar = {"function": ResourceName._make}

    function: ResourceName
    name: str
    version: str
    revision: str
    description: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventSettings(Document):
    """The settings of the asynchronous invocations of a function, by what of it is named.

    They are there from the first such invocation on, whether a caller gave any or not.

    Attributes:
        function: Whose.
        qualifier: `$LATEST`, a version or an alias.
        retries: How often a failed event is tried again; None: as often as usual.
        age_seconds: How old an event may become; None: as old as usual.
        on_success: The ARN that records of successes go to; empty: none.
        on_failure: The same of failures.
        modified_at: When a caller gave them (ms); None: nobody did.
    """

    restored: ClassVar = {"function": ResourceName._make}

    function: ResourceName
    qualifier: str
    retries: int | None = None
    age_seconds: int | None = None
    on_success: str = ""
    on_failure: str = ""
    modified_at: int | None = None


@dataclass(frozen=True, slots=True)
class Provisioned(Document):
    """The environments that are kept ready of a version or an alias.

    Attributes:
        function: Whose.
        qualifier: The version or the alias.
        wanted: How many each node keeps.
        modified_at: ms.
    """

    restored: ClassVar = {"function": ResourceName._make}

    function: ResourceName
    qualifier: str
    wanted: int
    modified_at: int

    @property
    def key(self) -> str:
        """The key of its document."""
        return f"{self.function.key}/{self.qualifier}"


FUNCTION: Final = DocumentKind.of("function", FunctionRecord, secret=True)
VERSION: Final = DocumentKind.of("function_version", Configuration, secret=True)
ALIAS: Final = DocumentKind.of("function_alias", FunctionAlias)

EVENTS: Final = DocumentKind.of("function_events", EventSettings)

PROVISIONED: Final = DocumentKind.of("function_provisioned", Provisioned)

_DIGITS: Final = 10  # so that keys are in the order of the numbers


def version_key(name: ResourceName, version: str) -> str:
    """The key of a published version."""
    return f"{name.key}/{version.zfill(_DIGITS)}"


def qualified_key(name: ResourceName, qualifier: str) -> str:
    """The key of an alias, and of the settings of a version or an alias."""
    return f"{name.key}/{qualifier}"
