"""Routes of REST services: the operation that a method and a path mean, by the paths of the published model."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import parse_qs, unquote

from redrive.aws.wire.service import Service

#: Of a path, and parameters of a query: more than any operation's. Nobody has been authenticated yet.
_PATH_CHARS_MAX: Final = 1024
_QUERY_FIELDS_MAX: Final = 100
_NAME: Final = re.compile(r"\{([\w-]+)(\+?)\}")


@dataclass(frozen=True, slots=True)
class RestRoute:
    """One operation's path."""

    operation: str  # Its name
    path: re.Pattern[str]  # Matches paths, with a group for each parameter
    names: tuple[str, ...]  # The model's names of the parameters, in order
    query: Mapping[str, list[str]]  # Query parameters that select this operation


def route(service: str, method: str, path: str, query: str) -> tuple[str, Mapping[str, str]] | None:
    """Return the operation of a request and its path's parameters, or None if the service has no such path."""
    if len(path) > _PATH_CHARS_MAX or query.count("&") >= _QUERY_FIELDS_MAX:
        return None
    for candidate in _routes(service).get(method, ()):
        match = candidate.path.fullmatch(path)
        if match is not None and _fits(candidate, query):
            values = (unquote(value) for value in match.groups())
            return candidate.operation, dict(zip(candidate.names, values, strict=True))
    return None


def _fits(candidate: RestRoute, query: str) -> bool:
    if not candidate.query:
        return True
    fields = parse_qs(query, keep_blank_values=True)
    return all(fields.get(name) == values for name, values in candidate.query.items())


@cache
def _routes(service: str) -> Mapping[str, list[RestRoute]]:
    """The routes of each method: with a query first, then those with fewer parameters and more text."""
    by_method: dict[str, list[RestRoute]] = {}
    for operation, (method, uri) in Service.load(service).routes.items():
        by_method.setdefault(method, []).append(_compiled(operation, uri))
    for routes in by_method.values():
        routes.sort(key=lambda each: (not each.query, len(each.names), -len(each.path.pattern)))
    return by_method


def _compiled(operation: str, uri: str) -> RestRoute:
    path, _, query = uri.partition("?")
    names, pattern, at = [], "", 0
    for match in _NAME.finditer(path):
        names.append(match[1])
        pattern += re.escape(path[at : match.start()]) + ("(.+)" if match[2] else "([^/]+)")
        at = match.end()
    pattern += re.escape(path[at:].rstrip("/")) + "/?"
    return RestRoute(operation, re.compile(pattern), tuple(names), parse_qs(query, keep_blank_values=True))
