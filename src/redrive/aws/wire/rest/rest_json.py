"""The REST JSON protocol: method and path name the operation; parameters stand in path, query, headers and body."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs, unquote

import orjson

from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.json.event_stream import CONTENT_TYPE, encode_events
from redrive.aws.wire.json.rpc import load
from redrive.aws.wire.json.values import as_base64, reader, writer
from redrive.aws.wire.rest.values import query_of, value_of
from redrive.aws.wire.service import Operation, Service, answer_headers
from redrive.aws.wire.shapes import Member, Shape, Structure, Value
from redrive.model.http import Request, Response

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
        if match is not None and _has_query(candidate, query):
            values = (unquote(value) for value in match.groups())
            return candidate.operation, dict(zip(candidate.names, values, strict=True))
    return None


def _has_query(candidate: RestRoute, query: str) -> bool:
    if not candidate.query:
        return True
    fields = parse_qs(query, keep_blank_values=True)
    return all(fields.get(name) == values for name, values in candidate.query.items())


@cache
def _routes(service: str) -> Mapping[str, list[RestRoute]]:
    """The routes of each method: with a query first, then those with fewer parameters and more text."""
    by_method: dict[str, list[RestRoute]] = {}
    for operation, (method, uri) in Service.load(service).routes.items():
        by_method.setdefault(method, []).append(_compile_route(operation, uri))
    for routes in by_method.values():
        routes.sort(key=lambda each: (not each.query, len(each.names), -len(each.path.pattern)))
    return by_method


def _compile_route(operation: str, uri: str) -> RestRoute:
    """The route of an operation: in its URI `{name}` stands for one segment, `{name+}` for any number."""
    path, _, query = uri.partition("?")
    names, pattern, position = [], "", 0
    for match in _NAME.finditer(path):
        names.append(match[1])
        pattern += re.escape(path[position : match.start()]) + ("(.+)" if match[2] else "([^/]+)")
        position = match.end()
    pattern += re.escape(path[position:].rstrip("/")) + "/?"
    return RestRoute(operation, re.compile(pattern), tuple(names), parse_qs(query, keep_blank_values=True))


class RestJsonCodec:
    """The protocol, for one request whose path was matched."""

    __slots__ = ("_parameters",)

    def __init__(self, parameters: Mapping[str, str]) -> None:
        """Take these parameters out of the path, by the names in the model's path."""
        self._parameters = parameters

    def parse(self, operation: Operation, request: Request) -> Structure:
        """Return the operation's parameters; raises AwsError (`SerializationException`)."""
        shape = operation.input
        profile = operation.service.profile
        try:
            parsed = self._from_body(shape, request.body, profile.values_max)
        except AwsError as error:
            if error.message not in profile.mistyped:
                raise
            raise common("SerializationException", profile.mistyped[error.message]) from None
        query = query_of(request.query)
        for name, member in shape.members.items():
            if member.location == "querystring" and member.shape.type == "map":
                if other_fields := _other_fields(query, operation):
                    parsed[name] = other_fields
                continue
            value = self._value_outside_body(member, query, request.headers)
            if value is not None:
                parsed[name] = value
        return parsed

    def _value_outside_body(
        self, member: Member, query: Mapping[str, list[str]], headers: Mapping[str, str]
    ) -> Value | None:
        """The value of a member in the path, the query or a header; None: it is not there."""
        match member.location:
            case "uri":
                return value_of(member.shape, [self._parameters[member.json_name]])
            case "querystring":
                value = query.get(member.json_name)
                return None if value is None else value_of(member.shape, value)
            case "header":
                text = headers.get(member.json_name.lower())
                return None if text is None else value_of(member.shape, [text])
            case _:
                return None

    def _from_body(self, shape: Shape, body: bytes, values_max: int) -> Structure:
        """The members that the body has: its payload alone, or those of the JSON object in it."""
        if shape.payload:
            member = shape.members[shape.payload]
            if member.shape.type == "blob":
                return {shape.payload: body}
            return {shape.payload: _json_of(member.shape, body, values_max)} if body else {}
        if not body:
            return {}
        parsed: Structure = _json_of(shape, body, values_max)
        return {name: value for name, value in parsed.items() if not shape.members[name].location}

    def render(self, operation: Operation, result: Structure, request_id: str) -> Response:
        """Return the result: members in headers and status where the model has them there."""
        headers, status = dict(answer_headers(request_id)), operation.status
        shape = operation.output
        if shape is None:
            return Response(status, b"", "application/json", headers)
        body: Structure = {}
        for name, value in result.items():
            member = shape.members[name]
            if value is None:
                continue
            if member.location == "statusCode":
                status = value
            elif member.location == "header":
                headers[member.json_name] = str(value)
            else:
                body[name] = value
        if shape.payload in body and (events := shape.members[shape.payload].shape).is_event_stream:
            parts = encode_events(events, body[shape.payload])
            return Response(status, b"", CONTENT_TYPE, headers, parts=parts)
        return Response(status, _body_of(shape, body), "application/json", headers)

    def render_error(self, service: Service, error: AwsError, request_id: str) -> Response:
        """Return the error: its code in a header, its text under the name that the model gives it."""
        members = service.error_members(error.code)
        headers = {**answer_headers(request_id), "x-amzn-ErrorType": error.code}
        body: dict[str, Any] = {}
        if not members or "Type" in members:
            body["Type"] = "User" if error.sender else "Service"
        if error.message:
            body["message" if "message" in members else "Message"] = error.message
        for name, value in error.details.items():
            if name in members and not value:  # left out, where this error has it as a rule
                body.pop(name, None)
            elif name in members:
                body[name] = value
            else:
                headers[name] = value
        return Response(error.status, orjson.dumps(body), "application/json", headers)


def _other_fields(query: Mapping[str, list[str]], operation: Operation) -> dict[str, str]:
    """The fields of a query that no other member has, and that do not select the operation."""
    members = operation.input.members.values()
    member_names = {member.json_name for member in members if member.location == "querystring"}
    member_names |= query_of(operation.path.partition("?")[2]).keys()
    return {name: texts[-1] for name, texts in query.items() if name not in member_names}


def _json_of(shape: Shape, body: bytes, values_max: int) -> Value:
    try:
        return reader(shape)(load(body, values_max))
    # Only a shape that contains itself can go as deep as the document.
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise common("SerializationException") from error


def _body_of(shape: Shape, members: Structure) -> bytes:
    if shape.payload and shape.members[shape.payload].shape.type == "blob":
        payload: bytes = members.get(shape.payload, b"")
        return payload
    value = members.get(shape.payload, {}) if shape.payload else members
    write = writer(shape.members[shape.payload].shape if shape.payload else shape)
    return orjson.dumps(value if write is None else write(value), default=as_base64)
