"""Recognition of a request's service, operation and protocol, before it is trusted or its body is read."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from redrive.aws.gateway.s3_routes import is_for_s3, s3_route
from redrive.aws.wire.cbor.rpc import CBOR
from redrive.aws.wire.json.rpc import JSON_1_0, JSON_1_1, JsonCodec
from redrive.aws.wire.profiles import profiles
from redrive.aws.wire.query.input import search
from redrive.aws.wire.query.query import QUERY, QUERY_AS_JSON
from redrive.aws.wire.rest.rest_json import RestJsonCodec, route
from redrive.aws.wire.rest.rest_xml import RestXmlCodec
from redrive.aws.wire.service import Codec, Service, answer_headers
from redrive.aws.wire.signatures.sigv4 import credential_scope
from redrive.model.http import Request, Response


@dataclass(frozen=True, slots=True)
class Recognition:
    """The service, operation and codec of a request."""

    service: str  # Botocore's name of it: `Service.load` takes it
    # As the request names it; the service may have none of that name. None: the name is in a compressed form,
    # which is decompressed for known callers alone; `action` finds it then.
    operation: str | None
    codec: Codec | None  # Its protocol for this request; None for one that is recognised but not spoken


def recognise(request: Request) -> Recognition | None:
    """Return what an AWS request asks for, or None if that cannot be determined.

    JSON requests say it in `X-Amz-Target`, CBOR and REST requests in their path. Query requests name only an action; the
    service is taken from the signature's scope, then from the host, then from the API version, and last from the
    action where one service alone has it. S3's requests have no mark but their signature's scope or their host.
    """
    target = request.headers.get("x-amz-target")
    if target is not None:
        return _by_target(request, target)
    if request.path.startswith(_CBOR_PATH):
        return _by_cbor_path(request.path)
    if _may_be_for_s3(request) and is_for_s3(request):
        return _by_bucket(request)
    return _by_rest_path(request) or _by_action(request)


def service_in_head(request: Request) -> str | None:
    """Return the service that a request's head names, by which the size of its body is limited before it arrives."""
    target = request.headers.get("x-amz-target")
    if target is not None:
        return _TARGETS.get(target.rpartition(".")[0])
    if request.path.startswith(_CBOR_PATH):
        route_match = _CBOR_ROUTE.fullmatch(request.path)
        return None if route_match is None else _TARGETS.get(route_match[1])
    if _may_be_for_s3(request) and is_for_s3(request):
        return "s3"
    return _rest_service(request) or _query_service(request)


def action(request: Request) -> str:
    """The operation that a form names; empty if it names none."""
    return search(request, _ACTION)


def is_compressed(request: Request) -> bool:
    """True if the client compressed the body."""
    coding = request.headers.get("content-encoding")
    return coding is not None and coding.strip().lower() == "gzip"


def unrecognised(request_id: str) -> Response:
    """Return what AWS's front answers to a request no protocol claims: 404 and one element."""
    return Response(404, b"<UnknownOperationException/>\n", "text/xml", answer_headers(request_id))


_ACTION: Final = b"&Action="
_VERSION: Final = b"&Version="
_CBOR_PATH: Final = "/service/"
_CBOR_ROUTE: Final = re.compile(r"/service/([^/]+)/operation/([^/]+)/?")

_DATED_PATH: Final = re.compile(r"/(\d{4}-\d{2}-\d{2})/")
_GATEWAY_PATHS: Final = ("/restapis", "/v2/apis")

_PROFILES: Final = profiles()
_DATES: Final = {date: p.name for p in _PROFILES.values() for date in p.dates}
_TARGETS: Final = {p.target_prefix: p.name for p in _PROFILES.values() if p.target_prefix}
_ENDPOINTS: Final = {name: p.name for p in _PROFILES.values() for name in (p.endpoint_prefix, *p.hosts)}
_QUERY_ENDPOINTS: Final = {
    prefix: name for prefix, name in _ENDPOINTS.items() if "query" in _PROFILES[name].protocols
}
# REST services whose paths have no date, by the scope of their signatures; HTTP APIs share that of REST APIs.
_REST_ENDPOINTS: Final = {
    p.endpoint_prefix: p.name
    for p in _PROFILES.values()
    if "rest-json" in p.protocols and not p.dates and p.name != "apigatewayv2"
}
_VERSIONS: Final = {_PROFILES[name].api_version: name for name in _QUERY_ENDPOINTS.values()}

_HOST_LABELS: Final = 3  # `sqs.us-east-1.…`, `us-east-1.queue.…`, `vpce-0a1b.sqs.us-east-1.…`


# Targets of operations that exist, as SDKs send them: taking the header apart for each request takes 1 us more.
KNOWN_TARGETS: Final[dict[tuple[str, str], Recognition]] = {}
_JSON_TYPES: Final = ("application/x-amz-json-1.0", "application/x-amz-json-1.1")


def _by_target(request: Request, target: str) -> Recognition | None:
    """The call that `X-Amz-Target` names; calls of known operations are remembered."""
    content_type = request.headers.get("content-type", "")
    key = (target, content_type)
    if (remembered := KNOWN_TARGETS.get(key)) is not None:
        return remembered
    prefix, _, operation = target.rpartition(".")
    service = _TARGETS.get(prefix)
    if service is None:
        return None
    recognition = Recognition(service, operation, _json_codec(request, service))
    if content_type in _JSON_TYPES and operation in Service.load(service).operation_names:
        KNOWN_TARGETS[key] = recognition  # so there are no more than the models have operations
    return recognition


def _json_codec(request: Request, service: str) -> JsonCodec:
    content_type = request.headers.get("content-type", "")
    if content_type.startswith("application/x-amz-json-1.0"):
        return JSON_1_0
    if content_type.startswith("application/x-amz-json-1.1"):
        return JSON_1_1
    return JSON_1_1 if Service.load(service).json_version == "1.1" else JSON_1_0


def _by_cbor_path(path: str) -> Recognition | None:
    route = _CBOR_ROUTE.fullmatch(path)
    service = None if route is None else _TARGETS.get(route[1])
    if route is None or service is None or "smithy-rpc-v2-cbor" not in _PROFILES[service].protocols:
        return None
    return Recognition(service, route[2], CBOR)


def _by_rest_path(request: Request) -> Recognition | None:
    """A call of a REST service; its path begins with a word or a date, and so is never taken for a queue's."""
    service = _rest_service(request)
    if service is None:
        return None
    operation = route(service, request.method, request.path, request.query)
    return None if operation is None else Recognition(service, operation[0], RestJsonCodec(operation[1]))


def _rest_service(request: Request) -> str | None:
    """The REST service whose path this is: by its date or first word, else by the scope of the signature."""
    if request.path == "/":  # every call by Query
        return None
    date_match = _DATED_PATH.match(request.path)
    if date_match is not None:
        return _DATES.get(date_match[1])
    service: str | None = "apigateway"
    if not request.path.startswith(_GATEWAY_PATHS):
        scope = credential_scope(request)
        service = None if scope is None else _REST_ENDPOINTS.get(scope.service)
    if service == "apigateway" and request.path.startswith("/v2/"):
        return "apigatewayv2"
    return service


def _may_be_for_s3(request: Request) -> bool:
    """False for nearly every call of an SDK to other services, to which `is_for_s3` need not be applied."""
    return request.path != "/" or request.method != "POST" or bool(request.query)


def _by_bucket(request: Request) -> Recognition | None:
    bucket_route = s3_route(request)
    return None if bucket_route is None else Recognition("s3", bucket_route[0], RestXmlCodec(bucket_route[1]))


def _by_action(request: Request) -> Recognition | None:
    """The call that the form names by `Action`; None: none, or of no service here."""
    codec = QUERY_AS_JSON if "application/json" in request.headers.get("accept", "") else QUERY
    service = _query_service(request)
    if is_compressed(request):
        return None if service is None else Recognition(service, None, codec)
    operation = action(request)
    if not operation:
        return None
    service = service or _VERSIONS.get(search(request, _VERSION)) or _unique_actions().get(operation)
    return None if service is None else _query_recognition(service, operation, codec)


# The same of actions that exist: to make the value each time takes 1 us.
_KNOWN_ACTIONS: Final[dict[tuple[str, str, Codec], Recognition]] = {}


def _query_recognition(service: str, operation: str, codec: Codec) -> Recognition:
    key = (service, operation, codec)
    recognition = _KNOWN_ACTIONS.get(key)
    if recognition is None:
        recognition = Recognition(service, operation, codec)
        if operation in Service.load(service).operation_names:
            _KNOWN_ACTIONS[key] = recognition
    return recognition


def _query_service(request: Request) -> str | None:
    """The query service that a signature is scoped to, or that the host names."""
    scope = credential_scope(request)
    if scope is not None and scope.service in _QUERY_ENDPOINTS:
        return _QUERY_ENDPOINTS[scope.service]
    for label in request.host.lower().split(".", _HOST_LABELS)[:_HOST_LABELS]:
        if label in _QUERY_ENDPOINTS:
            return _QUERY_ENDPOINTS[label]
    return None


@cache
def _unique_actions() -> dict[str, str]:
    """Return the services of the actions that one query service alone has."""
    owners: dict[str, list[str]] = {}
    for service in set(_QUERY_ENDPOINTS.values()):
        for action in Service.load(service).operation_names:
            owners.setdefault(action, []).append(service)
    return {action: services[0] for action, services in owners.items() if len(services) == 1}
