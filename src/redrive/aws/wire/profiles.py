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
    """The models' enumerations in the order in which refusals print them, a hash table's (recorded)."""

    def amended(shapes: Raw) -> Raw:
        ordered = {
            name: {**shapes[name], "enum": sorted(shapes[name]["enum"], key=order.index)}
            for name, order in orders.items()
        }
        return {**shapes, **ordered}

    return amended


MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Profile:
    """One service on the wire.

    Attributes:
        name: Botocore's name of the service and of its model.
        endpoint_prefix: The service's name in host names and in a signature's credential scope.
        api_version: What query requests give as `Version`, where they give it.
        hosts: Further names of it in host names.
        dates: The dates with which paths of its requests begin.
        protocols: Those of its protocols that Redrive recognises: `json`, `query`, `rest-json`, `rest-xml`,
            `smithy-rpc-v2-cbor`.
        target_prefix: What stands before the operation in `X-Amz-Target`.
        json_namespace: The Smithy namespace of its errors in `__type`; services that speak JSON 1.1 print none.
        xml_namespace: Of its query answers, where the model gives none.
        xml_declaration: What its query answers begin with.
        error_detail: Whether its query errors end in an empty `Detail`.
        checks: The kinds of constraint its model decides; the facade answers the others.
        spelling: How it spells the path to a value.
        names_input: Whether paths begin with the name of the operation's input: `updateRestApiInput`.
        mistyped: Its words for JSON of another type than the model's, by the usual ones that they replace.
        violated: Makes its error of what was violated, of which there is at least one.
        errors: Errors its model does not list, or lists without their codes.
        bad_requests_alone: Whether JSON and CBOR answer every fault of the caller by 400, unless it asks for the statuses
            of Query (`x-amzn-query-mode: true`).
        amended: Returns the model's shapes with what was taken out of them put back, or left to the facade.
        answer_names: Members the JSON form of a query answer calls otherwise.
        path_member: The parameter a query request may leave to its URL.
        unknown_action: The query text for an `{action}` it does not have in this `{version}`.
        denied: The code of its error for a caller without permission.
        unsigned: Operations that may be called without a signature.
        body_bytes_max: The largest body of its requests, compressed or not.
        values_max: How many objects, lists and elements a JSON body may hold.
        fields_max: How many fields a form may have.
        takes_gzip: Whether its clients compress.
        keeps_coding: Whether a content coding belongs to what is sent, and is no matter of the wire.
        large_answers: Operations whose answers may take 0.3 s to write: they are written beside the event loop.
    """

    name: str
    endpoint_prefix: str
    api_version: str
    protocols: frozenset[str]
    target_prefix: str = ""
    json_namespace: str = ""
    xml_namespace: str = ""
    xml_declaration: str = ""
    error_detail: bool = False
    checks: frozenset[ViolationKind] = frozenset(ViolationKind)
    spelling: Spelling = field(default_factory=CoralSpelling)
    names_input: bool = False
    mistyped: Mapping[str, str] = field(default_factory=dict)
    violated: Callable[[Sequence[Violation]], AwsError] = coral_error
    errors: tuple[ErrorKind, ...] = ()
    amended: Callable[[Raw], Raw] = _as_published
    answer_names: Mapping[str, str] = field(default_factory=dict)
    path_member: str = ""
    unknown_action: str = "Could not find operation {action} for version {version}"
    bad_requests_alone: bool = False
    hosts: tuple[str, ...] = ()
    dates: frozenset[str] = frozenset()
    denied: str = "AccessDeniedException"
    unsigned: frozenset[str] = frozenset()
    body_bytes_max: int = MIB
    values_max: int = 4096
    fields_max: int = 4096
    takes_gzip: bool = False
    keeps_coding: bool = False
    large_answers: frozenset[str] = frozenset()


#: Protocols, as profiles name them.
JSON: Final = frozenset({"json"})
QUERY: Final = frozenset({"query"})
REST_JSON: Final = frozenset({"rest-json"})


@cache
def profile_of(service: str) -> Profile:
    """The profile of the service that botocore calls so, out of the service's folder.

    Raises:
        KeyError: Redrive knows no such service.
    """
    profile: Profile = import_module(f"redrive.aws.{FOLDERS[service]}.service").SERVICE.profile
    return profile


def profiles() -> Mapping[str, Profile]:
    """Those of every service that Redrive recognises, by botocore's names."""
    return {service: profile_of(service) for service in FOLDERS}
