"""Profiles of services: facts that their published models do not state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final

from redrive.aws.services import FOLDERS
from redrive.aws.wire.errors import AwsError, ErrorKind
from redrive.aws.wire.shapes import Raw
from redrive.aws.wire.validation import CoralSpelling, Spelling
from redrive.aws.wire.violations import Violation, ViolationKind, coral_error


def _as_published(shapes: Raw) -> Raw:
    return shapes


def in_order(**orders: tuple[str, ...]) -> Callable[[Raw], Raw]:
    """A change of shapes that puts enumerations in the order in which refusals print them, a hash table's (recorded)."""

    def with_order(shapes: Raw) -> Raw:
        ordered_shapes = {
            name: {**shapes[name], "enum": sorted(shapes[name]["enum"], key=order.index)}
            for name, order in orders.items()
        }
        return {**shapes, **ordered_shapes}

    return with_order


MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Profile:
    """One service on the wire."""

    name: str  # Botocore's name of the service and of its model
    endpoint_prefix: str  # The service's name in host names and in a signature's credential scope
    api_version: str  # `Version` of query requests, where it is sent
    # Those of its protocols that Redrive recognises: `json`, `query`, `rest-json`, `rest-xml`, `smithy-
    # rpc-v2-cbor`.
    protocols: frozenset[str]
    target_prefix: str = ""  # Prefix of the operation in `X-Amz-Target`
    # The Smithy namespace of its errors in `__type`; services that speak JSON 1.1 print none.
    json_namespace: str = ""
    xml_namespace: str = ""  # Namespace of query answers, if the model has none
    xml_declaration: str = ""  # Beginning of query answers
    error_detail: bool = False  # Whether its query errors end in an empty `Detail`
    # The kinds of constraint its model decides; the facade answers the others.
    checks: frozenset[ViolationKind] = frozenset(ViolationKind)
    spelling: Spelling = field(default_factory=CoralSpelling)  # How it spells the path to a value
    # Whether paths begin with the name of the operation's input: `updateRestApiInput`.
    names_input: bool = False
    # Its words for JSON of another type than the model's, by the usual ones that they replace.
    mistyped: Mapping[str, str] = field(default_factory=dict)
    # Makes its error of what was violated, of which there is at least one.
    violated: Callable[[Sequence[Violation]], AwsError] = coral_error
    errors: tuple[ErrorKind, ...] = ()  # Errors its model does not list, or lists without their codes
    # Returns the model's shapes with what was taken out of them put back, or left to the facade.
    amended: Callable[[Raw], Raw] = _as_published
    # Members the JSON form of a query answer calls otherwise.
    answer_names: Mapping[str, str] = field(default_factory=dict)
    path_member: str = ""  # The parameter a query request may leave to its URL
    # The query text for an `{action}` it does not have in this `{version}`.
    unknown_action: str = "Could not find operation {action} for version {version}"
    # Whether JSON and CBOR answer every fault of the caller by 400, unless it asks for the statuses of Query
    # (`x-amzn-query-mode: true`).
    bad_requests_alone: bool = False
    hosts: tuple[str, ...] = ()  # Further names of it in host names
    dates: frozenset[str] = frozenset()  # The dates with which paths of its requests begin
    denied: str = "AccessDeniedException"  # The code of its error for a caller without permission
    unsigned: frozenset[str] = frozenset()  # Operations that may be called without a signature
    body_bytes_max: int = MIB  # The largest body of its requests, compressed or not
    values_max: int = 4096  # How many objects, lists and elements a JSON body may hold
    fields_max: int = 4096  # How many fields a form may have
    takes_gzip: bool = False  # Whether its clients compress
    # Whether a content coding belongs to what is sent, and is no matter of the wire.
    keeps_coding: bool = False
    # Operations whose answers may take 0.3 s to write: they are written beside the event loop.
    large_answers: frozenset[str] = frozenset()


#: Protocols, as profiles name them.
JSON: Final = frozenset({"json"})
QUERY: Final = frozenset({"query"})
REST_JSON: Final = frozenset({"rest-json"})


@cache
def profile_of(service: str) -> Profile:
    """The profile of the service that botocore calls so, from its folder; raises KeyError if Redrive has none."""
    profile: Profile = import_module(f"redrive.aws.{FOLDERS[service]}.service").SERVICE.profile
    return profile


def profiles() -> Mapping[str, Profile]:
    """Those of every service that Redrive recognises, by botocore's names."""
    return {service: profile_of(service) for service in FOLDERS}
