"""Documents of functions, their versions and aliases, function URLs and event source mappings."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Final, NamedTuple, Self

from redrive.aws.lambda_.documents.names import LATEST, FunctionReference, arn_of
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.hosted_urls import HostedUrls, hosted_url
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft
from redrive.model.document import Document
from redrive.model.http import Request
from redrive.model.names import ResourceName

REQUEST_BYTES_MAX: Final = 6 * 1024 * 1024  # of an invocation that is answered
_DIGITS: Final = 10  # so that keys are in the order of the numbers
URL_PATH: Final = "/_redrive/function-url/"
CODE_PATH: Final = "/_redrive/function-code/"  # of links to the code of functions
_HOST: Final = re.compile(r"([a-z0-9]{32})\.lambda-url\.[a-z0-9-]+\..+")
_IN_HOST: Final = ".lambda-url."
_HOST_CHARS_MAX: Final = 300
URLS: Final = HostedUrls(_IN_HOST, re.compile(URL_PATH), REQUEST_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class LayerUse:
    """A layer's version that a function uses, which may be deleted meanwhile."""

    arn: str  # ARN of the version
    kept_as: str  # The name that its archive is kept under
    code: str  # SHA-256 of the archive, in base64
    code_bytes: int  # The size of the archive
    unpacked_bytes: int  # The size of what is in it

    @property
    def archive(self) -> ResourceName:
        """The place of its archive, in the layer's account."""
        arn = parse_arn(self.arn)
        return ResourceName(arn.account, arn.region, self.kept_as)


def _layers(stored: Iterable[Mapping[str, Any]]) -> tuple[LayerUse, ...]:
    return tuple(LayerUse(**layer) for layer in stored)


@dataclass(frozen=True, slots=True)
class Configuration(Document):
    """One version of a function: all that running it takes, but its code."""

    restored: ClassVar = {"name": ResourceName._make, "layers": _layers}

    name: ResourceName  # Account, region and name
    version: str  # `$LATEST` or a number
    revision: str  # Another one with every change
    modified_at: int  # ms
    role: str  # The ARN of the execution role
    runtime: str  # As the caller named it
    handler: str  # In the runtime's own notation
    code: str  # SHA-256 of the archive, in base64
    code_bytes: int  # The size of the archive
    description: str = ""  # Free text
    timeout_seconds: int = 3  # An invocation is ended after this
    memory_mb: int = 128  # A process that holds more is ended
    storage_mb: int = 512  # Size of its /tmp
    # Its environment variables; None: it never had any, which answers tell from an empty map.
    variables: Mapping[str, str] | None = None
    dead_letter: str = ""  # The ARN that events go to which failed for good; empty: none
    architecture: str = "x86_64"  # `x86_64` or `arm64`, as declared; what runs is this machine's
    tracing: str = "PassThrough"  # `PassThrough` or `Active`, handed back as given
    # `LogFormat`, `LogGroup`, and with JSON `ApplicationLogLevel` and `SystemLogLevel`.
    logging: Mapping[str, str] = field(default_factory=dict)
    network: Mapping[str, Any] | None = None  # `VpcConfig` as given, which changes nothing here
    unpacked_bytes: int = 0  # The size of what is in the archive
    layers: tuple[LayerUse, ...] = ()  # Those it is run with, later ones over earlier ones
    kms_key: str = ""  # The ARN of the key that its variables are encrypted by; empty: the server's own
    sealed_variables: str = ""  # They, as KMS encrypted them, in base64; `variables` is None then

    @property
    def arn(self) -> str:
        """The version's own ARN; that of `$LATEST` is unqualified."""
        return arn_of(self.name, None if self.version == LATEST else self.version)


@dataclass(frozen=True, slots=True)
class FunctionPolicy:
    """The resource policy of a function, or of one of its versions or aliases."""

    revision: str  # Another one with every change
    statements: tuple[Mapping[str, Any], ...] = ()  # As `AddPermission` made them


@dataclass(frozen=True, slots=True)
class FunctionUrl:
    """The URL of a function, or of one of its aliases."""

    id: str  # The 32 characters that its host begins with
    auth: str  # `NONE` or `AWS_IAM`
    created_at: int  # ms
    modified_at: int  # ms
    mode: str = "BUFFERED"  # `BUFFERED` or `RESPONSE_STREAM`
    # Which pages' scripts may ask, as given; None: the function says so itself.
    cors: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FunctionRecord:
    """A function, but for its published versions and its aliases."""

    latest: Configuration  # Its version `$LATEST`
    versions: int = 0  # How many were published; their numbers are never used again
    configured: bool = False  # Its configuration was updated since, be it to what it was
    reserved: int | None = None  # How many invocations may run at once; None: as many as the account may
    tags: Mapping[str, str] = field(default_factory=dict)  # Free labels
    # By qualifier; the unqualified function's under the empty one.
    policies: Mapping[str, FunctionPolicy] = field(default_factory=dict)
    urls: Mapping[str, FunctionUrl] = field(default_factory=dict)  # Likewise

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
    """A name for a version of a function, or for two of them."""

    restored: ClassVar = {"function": ResourceName._make}

    function: ResourceName  # Whose
    name: str  # Name of the alias
    version: str  # The version that it means
    revision: str  # Another one with every change
    description: str = ""  # Free text
    # The share of another version's invocations, by its number: one entry at most.
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventSettings(Document):
    """The settings of the asynchronous invocations of a function, by its version or alias.

    They are there from the first such invocation on, whether a caller gave any or not.
    """

    restored: ClassVar = {"function": ResourceName._make}

    function: ResourceName  # Whose
    qualifier: str  # `$LATEST`, a version or an alias
    retries: int | None = None  # How often a failed event is tried again; None: as often as usual
    age_seconds: int | None = None  # How old an event may become; None: as old as usual
    on_success: str = ""  # The ARN that records of successes go to; empty: none
    on_failure: str = ""  # The same of failures
    modified_at: int | None = None  # When a caller gave them (ms); None: never


@dataclass(frozen=True, slots=True)
class Provisioned(Document):
    """The environments that are kept ready of a version or an alias."""

    restored: ClassVar = {"function": ResourceName._make}

    function: ResourceName  # Whose
    qualifier: str  # The version or the alias
    wanted: int  # Number of environments that each node keeps ready
    modified_at: int  # ms

    @property
    def key(self) -> str:
        """The key of its document."""
        return f"{self.function.key}/{self.qualifier}"


FUNCTION: Final = DocumentKind.of("function", FunctionRecord, secret=True)
VERSION: Final = DocumentKind.of("function_version", Configuration, secret=True)
ALIAS: Final = DocumentKind.of("function_alias", FunctionAlias)

EVENTS: Final = DocumentKind.of("function_events", EventSettings)

PROVISIONED: Final = DocumentKind.of("function_provisioned", Provisioned)


def version_key(name: ResourceName, version: str) -> str:
    """The key of a published version."""
    return f"{name.key}/{version.zfill(_DIGITS)}"


def qualified_key(name: ResourceName, qualifier: str) -> str:
    """The key of an alias, and of the settings of a version or an alias."""
    return f"{name.key}/{qualifier}"


@dataclass(frozen=True, slots=True)
class EventSourceMapping(Document):
    """One queue that feeds one function."""

    restored: ClassVar = {"queue": ResourceName._make, "function": ResourceName._make, "filters": tuple}

    id: str  # A UUID
    queue: ResourceName  # Source queue
    function: ResourceName  # Function, version or alias that it invokes
    qualifier: str | None = None  # As it was named; None: it was not
    enabled: bool = True  # Whether messages are taken
    batch_size: int = 10  # The largest number of messages of an invocation
    window_seconds: int = 0  # How long messages are gathered for one
    concurrency_max: int | None = None  # How many invocations a node makes at once; None: as many as usual
    partial: bool = False  # The function answers which messages of a batch failed
    # Patterns in JSON, of which a message matches one or is deleted; empty: every message goes.
    filters: tuple[str, ...] = ()
    modified_at: int = 0  # ms
    counted: bool = False  # Whether its messages are counted in its own metrics
    tags: Mapping[str, str] = field(default_factory=dict)  # Free labels

    @property
    def arn(self) -> str:
        """The ARN of the mapping."""
        location = f"{self.function.region}:{self.function.account}"
        return f"arn:aws:lambda:{location}:event-source-mapping:{self.id}"

    @property
    def key(self) -> str:
        """The key of its document: in its account and region."""
        return f"{self.function.account}/{self.function.region}/{self.id}"

    @property
    def reference(self) -> FunctionReference:
        """The function, or the version or alias of it, that gets the messages."""
        return FunctionReference(self.function, self.qualifier)

    @property
    def queue_arn(self) -> str:
        """The ARN of the queue."""
        return f"arn:aws:sqs:{self.queue.region}:{self.queue.account}:{self.queue.name}"

    @property
    def ordered(self) -> bool:
        """True if the queue keeps the order of groups."""
        return self.queue.name.endswith(".fifo")


MAPPING: Final = DocumentKind.of("event_source_mapping", EventSourceMapping)


@dataclass(frozen=True, slots=True)
class UrlPlace(Document):
    """The place that a URL's id leads to."""

    restored: ClassVar = {"function": ResourceName._make}

    function: ResourceName  # Function it calls
    qualifier: str = ""  # The alias; empty: the function itself


FUNCTION_URL: Final = DocumentKind.of("function_url", UrlPlace)


class UrlTarget(NamedTuple):
    """The target of a request to a function URL."""

    id: str  # Id of the URL
    path: str  # As the function is told it
    domain: str  # The host that the function is told


def target_of(request: Request) -> UrlTarget | None:
    """The target of a request; None if its host or its path only looks like a function URL's."""
    host = request.host
    if request.path.startswith(URL_PATH):
        url_id, slash, path = request.path.removeprefix(URL_PATH).partition("/")
        return UrlTarget(url_id, f"{slash}{path}" or "/", host)
    match = _HOST.fullmatch(host.lower()) if len(host) <= _HOST_CHARS_MAX else None
    return None if match is None else UrlTarget(match[1], request.path, host.partition(":")[0])


def url_text(base_url: str, url_id: str, region: str) -> str:
    """The URL as callers are told it: `redrive.aws.wire.hosted_urls`."""
    return f"{hosted_url(base_url, f'{url_id}{_IN_HOST}{region}', f'{URL_PATH}{url_id}')}/"


def without_url_in(draft: Draft, function: FunctionRecord, qualifier: str) -> FunctionRecord:
    """The function without the URL of an alias, or its own; the draft forgets the URL's id."""
    function_url = function.urls.get(qualifier)
    if function_url is None:
        return function
    draft.remove(FUNCTION_URL, function_url.id)
    return replace(function, urls={each: url for each, url in function.urls.items() if each != qualifier})
