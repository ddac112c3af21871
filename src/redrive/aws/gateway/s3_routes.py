"""Routes of S3: which requests are for it, the bucket and key that they name, and the operation that they ask for.

S3's paths say nothing of S3 and its operations share paths, so a request is told by its signature or by its host, and an
operation by what its model requires in query and headers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs

from redrive.aws.wire.service import Service
from redrive.aws.wire.signatures.sigv2_query import is_presigned_v2
from redrive.aws.wire.signatures.sigv4 import credential_scope
from redrive.model.http import Request

#: Older forms of operations, of the same method and path as the newer.
_SUPERSEDED: Final = frozenset(
    {"GetBucketLifecycle", "GetBucketNotification", "PutBucketLifecycle", "PutBucketNotification"}
)
#: `bucket.s3.us-east-1.amazonaws.com`, `s3.localhost`, `bucket.s3-us-west-2.amazonaws.com`.
_S3_HOST: Final = re.compile(r"(?:(.+)\.)?s3(?:-[a-z0-9-]+)?\.[^:]+(?::[0-9]+)?")
#: SDKs put the bucket before any host that has a name.
_LOCAL_HOST: Final = re.compile(r"(.+)\.localhost(?::[0-9]+)?")
_HOST_CHARS_MAX: Final = 300
_QUERY_FIELDS_MAX: Final = 100
_BUCKET_PATH: Final = "/{Bucket}"
_OBJECT_PATH: Final = "/{Bucket}/{Key+}"


def is_for_s3(request: Request) -> bool:
    """True if a request is signed for S3, or is unsigned and sent to a host of S3's."""
    scope = credential_scope(request)
    if scope is not None:
        return scope.service == "s3"
    if request.query and is_presigned_v2(request):
        return True
    host = request.host
    return "s3" in host and "authorization" not in request.headers and _match(_S3_HOST, host) is not None


def bucket_of_host(host: str) -> str | None:
    """The bucket that a host names; None if it names none: then the path does."""
    match = _match(_S3_HOST, host) or _match(_LOCAL_HOST, host)
    return None if match is None else match[1]


def s3_route(request: Request) -> tuple[str, Mapping[str, str]] | None:
    """The operation of a request, with its bucket and its key as they stand in the URL; None if there is none."""
    if request.query.count("&") >= _QUERY_FIELDS_MAX:
        return None
    parameters = _bucket_and_key(request)
    path = "/"
    if parameters:
        path = _OBJECT_PATH if "Key" in parameters else _BUCKET_PATH
    query = parse_qs(request.query, keep_blank_values=True)
    for route in _routes().get((request.method, path), ()):
        if route.matches(query, request.headers):
            return route.operation, parameters
    return None


def _match(pattern: re.Pattern[str], host: str) -> re.Match[str] | None:
    return pattern.fullmatch(host.lower()) if len(host) <= _HOST_CHARS_MAX else None


def _bucket_and_key(request: Request) -> dict[str, str]:
    """The bucket, of the host or else of the path, and the key; without those that are not named."""
    bucket = bucket_of_host(request.host)
    path = request.path.removeprefix("/")
    if bucket is None:
        bucket, _, path = path.partition("/")
    if path:
        return {"Bucket": bucket, "Key": path}  # a bucket without a name is one that does not exist
    return {"Bucket": bucket} if bucket else {}


@dataclass(frozen=True, slots=True)
class _Route:
    operation: str
    query: Mapping[str, list[str]]
    required: tuple[str, ...]
    headers: tuple[str, ...]

    def matches(self, query: Mapping[str, list[str]], headers: Mapping[str, str]) -> bool:
        return (
            all(query.get(name) == values for name, values in self.query.items())
            and all(name in query for name in self.required)
            and all(name in headers for name in self.headers)
        )

    @property
    def condition_count(self) -> int:
        return len(self.query) + len(self.required) + len(self.headers)


@cache
def _routes() -> Mapping[tuple[str, str], list[_Route]]:
    """The routes of each method and sort of path, those that demand most first."""
    by_method: dict[tuple[str, str], list[_Route]] = {}
    service = Service.load("s3")
    for name, (method, uri) in service.routes.items():
        if name in _SUPERSEDED:
            continue
        path, _, query = uri.partition("?")
        required: dict[str, list[str]] = {"querystring": [], "header": []}
        shape = service.operation(name).input
        for each in shape.required:
            member: Any = shape.members[each]
            if member.location in required:
                required[member.location].append(member.json_name)
        headers = tuple(each.lower() for each in required["header"])
        route = _Route(name, parse_qs(query, keep_blank_values=True), tuple(required["querystring"]), headers)
        by_method.setdefault((method, path), []).append(route)
    for routes in by_method.values():
        routes.sort(key=lambda route: -route.condition_count)
    return by_method
