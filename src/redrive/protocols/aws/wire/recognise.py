"""Which service, operation and protocol a request means, before anything of it is believed."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from redrive.protocols.aws.wire.cbor_rpc import CBOR
from redrive.protocols.aws.wire.codec import Codec, answer_headers
from redrive.protocols.aws.wire.form import Form, read_form
from redrive.protocols.aws.wire.jsonrpc import JSON_1_0, JSON_1_1, JsonCodec
from redrive.protocols.aws.wire.profiles import PROFILES
from redrive.protocols.aws.wire.query import QueryAsJsonCodec, QueryCodec
from redrive.protocols.aws.wire.rest_json import RestJsonCodec
from redrive.protocols.aws.wire.rest_routes import route
from redrive.protocols.aws.wire.service import Service
from redrive.protocols.http import Request, Response


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a request asks for.

    Attributes:
        service: Botocore's name of it: `Service.load` takes it.
        operation: As the request names it; the service may have none of that name.
        codec: Its protocol for this request; None for one that is recognised but not spoken.
    """

    service: str
    operation: str
    codec: Codec | None


def recognise(request: Request) -> Recognised | None:
    """Return what an AWS request asks for, or None where it is none that can be told.

    JSON requests say it in `X-Amz-Target`, CBOR and REST requests in their path. Query requests name only an action; the
    service is taken from the signature's scope, then from the host, then from the API version, and last from the
    action where one service alone has it.
    """
    target = request.headers.get("x-amz-target")
    if target is not None:
        return _by_target(request, target)
    if request.path.startswith(_CBOR_PATH):
        return _by_path(request.path)
    return _by_route(request) or _by_action(request)


def unrecognised(request_id: str) -> Response:
    """Return what AWS's front answers to a request no protocol claims: 404 and one element."""
    return Response(404, b"<UnknownOperationException/>\n", "text/xml", answer_headers(request_id))


_CBOR_PATH: Final = "/service/"
_CBOR_ROUTE: Final = re.compile(r"/service/([^/]+)/operation/([^/]+)/?")

_DATED_PATH: Final = re.compile(r"/(\d{4}-\d{2}-\d{2})/")
# Those of the paths in Lambda's model; a test holds that they are all there are.
_DATES: Final = dict.fromkeys(
    (
        *("2014-11-13", "2015-03-31", "2016-08-19", "2017-03-31", "2017-10-31", "2018-10-31", "2019-09-25"),
        *("2019-09-30", "2020-04-22", "2020-06-30", "2021-07-20", "2021-10-31", "2021-11-15", "2024-08-31"),
        *("2025-11-30", "2025-12-01", "2026-07-09"),
    ),
    "lambda",
)

_TARGETS: Final = {p.target_prefix: p.name for p in PROFILES.values() if p.target_prefix}
_ENDPOINTS: Final = {p.endpoint_prefix: p.name for p in PROFILES.values()} | {"queue": "sqs"}
_QUERY_ENDPOINTS: Final = {
    prefix: name for prefix, name in _ENDPOINTS.items() if "query" in PROFILES[name].protocols
}
_VERSIONS: Final = {PROFILES[name].api_version: name for name in _QUERY_ENDPOINTS.values()}

_HOST_LABELS: Final = 3  # `sqs.us-east-1.…`, `us-east-1.queue.…`, `vpce-0a1b.sqs.us-east-1.…`
_SCOPE_SERVICE: Final = 3  # key/date/region/service/aws4_request


def _by_target(request: Request, target: str) -> Recognised | None:
    prefix, _, operation = target.rpartition(".")
    service = _TARGETS.get(prefix)
    if service is None:
        return None
    return Recognised(service, operation, _json_codec(request, service))


def _json_codec(request: Request, service: str) -> JsonCodec:
    content_type = request.headers.get("content-type", "")
    if content_type.startswith("application/x-amz-json-1.0"):
        return JSON_1_0
    if content_type.startswith("application/x-amz-json-1.1"):
        return JSON_1_1
    return JSON_1_1 if Service.load(service).json_version == "1.1" else JSON_1_0


def _by_path(path: str) -> Recognised | None:
    route = _CBOR_ROUTE.fullmatch(path)
    service = None if route is None else _TARGETS.get(route[1])
    if route is None or service is None or "smithy-rpc-v2-cbor" not in PROFILES[service].protocols:
        return None
    return Recognised(service, route[2], CBOR)


def _by_route(request: Request) -> Recognised | None:
    """Paths of REST services begin with the date of their API; those of queues begin with an account."""
    dated = _DATED_PATH.match(request.path)
    service = None if dated is None else _DATES.get(dated[1])
    if service is None:
        return None
    found = route(service, request.method, request.path, request.query)
    return None if found is None else Recognised(service, found[0], RestJsonCodec(found[1]))


def _by_action(request: Request) -> Recognised | None:
    form = read_form(request)
    action = form.fields.get("Action")
    if not action:
        return None
    service = _query_service(request, form, action)
    if service is None:
        return None
    wants_json = "application/json" in request.headers.get("accept", "")
    return Recognised(service, action, QueryAsJsonCodec(form) if wants_json else QueryCodec(form))


def _query_service(request: Request, form: Form, action: str) -> str | None:
    return (
        _QUERY_ENDPOINTS.get(_scope_service(request, form))
        or _by_host(request.host)
        or _VERSIONS.get(form.fields.get("Version", ""))
        or _actions_of_one().get(action)
    )


def _scope_service(request: Request, form: Form) -> str:
    """Return the service a signature is scoped to, from its header or from a presigned query; empty if none."""
    _, _, credential = request.headers.get("authorization", "").partition("Credential=")
    scope = (credential or form.fields.get("X-Amz-Credential", "")).partition(",")[0].split("/")
    return scope[-2].strip() if len(scope) > _SCOPE_SERVICE else ""


def _by_host(host: str) -> str | None:
    for label in host.lower().split(".")[:_HOST_LABELS]:
        if label in _QUERY_ENDPOINTS:
            return _QUERY_ENDPOINTS[label]
    return None


@cache
def _actions_of_one() -> dict[str, str]:
    """Return the services of the actions that one query service alone has."""
    owners: dict[str, list[str]] = {}
    for service in set(_QUERY_ENDPOINTS.values()):
        for action in Service.load(service).operation_names:
            owners.setdefault(action, []).append(service)
    return {action: services[0] for action, services in owners.items() if len(services) == 1}
