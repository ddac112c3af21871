"""Mapping of REST APIs: from a request to that of an integration, and from its answer to the method's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2

from redrive.aws.apigateway.control.exchange import Exchange, Refusal
from redrive.aws.apigateway.mapping.sources import (
    decode_body,
    encode_body,
    is_binary,
    request_value,
    response_value,
    variables_of,
)
from redrive.aws.apigateway.mapping.velocity.template import render
from redrive.aws.apigateway.mapping.velocity.values import TemplateFailed
from redrive.aws.apigateway.requests.answers import JSON, ApiAnswer
from redrive.aws.kit.regexes import compiled
from redrive.aws.wire.errors import AwsError

_TARGET: Final = "integration.request."
_HEADER: Final = "method.response.header."
_TRANSFER_HEADERS: Final = frozenset({"content-length", "transfer-encoding"})
#: Headers that a request to an AWS service may not be given (recorded); to others `_TRANSFER_HEADERS` may not.
_FORBIDDEN_FOR_SERVICES: Final = _TRANSFER_HEADERS | {
    *("authorization", "connection", "expect", "proxy-authenticate", "te")
}
_STATUSES: Final = range(200, 600)


@dataclass(slots=True)
class MappedRequest:
    """A request to an integration."""

    headers: dict[str, str]  # By name, in its original case
    query: dict[str, str]  # By name
    path: dict[str, str]  # Values of the `{variables}` in the integration's URI
    body: bytes


async def map_request(exchange: Exchange, integration: Mapping[str, Any], body: bytes) -> MappedRequest:
    """The request to an integration, from a caller's; `body` is converted already, as the integration asks.

    Raises:
        Refusal: There is no template for a body of this type, or it failed.
    """
    mapped = MappedRequest({}, {}, {}, body)
    places = {"header": mapped.headers, "querystring": mapped.query, "path": mapped.path}
    for target, source in (integration.get("requestParameters") or {}).items():
        kind, _, name = target.removeprefix(_TARGET).partition(".")
        value = request_value(exchange, source)
        if kind in places and name and value is not None:
            places[kind][name] = value
    template = _request_template(exchange, integration)
    if template is not None:
        payload = body.decode("utf-8", "replace")
        text, context = await _render(exchange, template, payload)
        overrides = _override(context, "requestOverride")
        if integration.get("type") == "MOCK":  # its request template decides about the answer, too (recorded)
            exchange.overrides = dict(_override(context, "responseOverride"))
        mapped.body = text.encode()
        for kind, values in places.items():
            values.update(_texts(overrides.get(kind)))
    forbidden = _FORBIDDEN_FOR_SERVICES if integration.get("type") == "AWS" else _TRANSFER_HEADERS
    for name in mapped.headers:
        if name.strip().lower() in forbidden:
            raise Refusal("API_CONFIGURATION_ERROR", reason=f"The header {name} cannot be mapped")
    mapped.headers.setdefault("Content-Type", exchange.header("content-type") or JSON)
    return mapped


def _request_template(exchange: Exchange, integration: Mapping[str, Any]) -> str | None:
    """The template for a body's type; None: the body is passed on unchanged. Raises Refusal if neither is allowed."""
    templates: Mapping[str, str] = integration.get("requestTemplates") or {}
    kind = exchange.content_type
    template = next((text for name, text in templates.items() if name.lower() == kind), None)
    if template is None:
        behaviour = integration.get("passthroughBehavior")
        if behaviour == "NEVER" or (behaviour == "WHEN_NO_TEMPLATES" and templates):
            raise Refusal("UNSUPPORTED_MEDIA_TYPE")
    return template


async def _render(exchange: Exchange, template: str, body: str) -> tuple[str, Any]:
    """The text of a template, and `$context` after it; raises Refusal if the template failed."""
    try:
        text, names = await render(
            exchange.stage_place.account, template, lambda: variables_of(exchange, body)
        )
    except TemplateFailed as failure:
        raise Refusal("API_CONFIGURATION_ERROR", reason=str(failure)) from None
    except AwsError:
        raise Refusal("THROTTLED") from None
    return text, names.get("context")


def _override(context: Any, name: str) -> Mapping[str, Any]:
    """The values by which a template overrides mapped ones."""
    overrides = context.get(name) if isinstance(context, dict) else None
    return overrides if isinstance(overrides, dict) else {}


def _texts(values: Any) -> dict[str, str]:
    """The texts of an override, numbers as texts; values of other types are left out."""
    if not isinstance(values, dict):
        return {}
    return {
        name: str(value)
        for name, value in values.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


# ---- answers ---------------------------------------------------------------------------------------------------------


async def map_answer(
    exchange: Exchange, method: Mapping[str, Any], answer: ApiAnswer, binary: Sequence[str]
) -> ApiAnswer:
    """The answer of a method, from that of its integration; `binary`: the API's binary media types.

    Bytes become text before a template, and base64 becomes bytes after it.

    Raises:
        Refusal: No integration response matches, a template failed, or the body cannot be converted.
    """
    response = select_response(method["methodIntegration"].get("integrationResponses") or {}, answer)
    if response is None:
        raise Refusal(
            "API_CONFIGURATION_ERROR",
            reason="No match for output mapping and no default output mapping configured.",
        )
    handling, was_binary = response.get("contentHandling"), is_binary(binary, answer.media_type)
    payload = encode_body(answer.body, handling, is_binary=was_binary)
    body = payload.decode("utf-8", "replace")
    headers = {"Content-Type": answer.header("content-type") or JSON}
    for target, source in (response.get("responseParameters") or {}).items():
        value = response_value(exchange, source, answer.headers, body)
        if target.startswith(_HEADER) and value is not None:
            headers[target.removeprefix(_HEADER)] = value
    status = int(response["statusCode"]) if str(response["statusCode"]).isdecimal() else answer.status
    status = _status(exchange.overrides.get("status"), status)
    kind, template = _response_template(exchange, response)
    if not template:
        return ApiAnswer(status, decode_body(payload, handling, is_binary=was_binary), headers)
    text, context = await _render(exchange, template, body)
    overrides = _override(context, "responseOverride")
    headers = {**headers, "Content-Type": kind, **_texts(overrides.get("header"))}
    status = _status(overrides.get("status"), status)
    return ApiAnswer(status, decode_body(text.encode(), handling, is_binary=was_binary), headers)


def _status(override: Any, status: int) -> int:
    """The status of an override, if it is one, and else the other."""
    if isinstance(override, str) and override.isdecimal() and len(override) == len("200"):
        override = int(override)
    return override if isinstance(override, int) and override in _STATUSES else status


def select_response(responses: Mapping[str, Any], answer: ApiAnswer) -> Mapping[str, Any] | None:
    """The response whose pattern matches an answer, or the one without a pattern; None: there is neither.

    A pattern has to match the whole status; of a function the whole error message, without which no pattern matches.
    """
    default = None
    is_function = answer.failure is not None or answer.header("x-amz-executed-version") is not None
    subject = answer.failure if is_function else str(answer.status)
    for response in responses.values():
        pattern = response.get("selectionPattern")
        if not pattern:
            default = default or response
        elif subject is not None and _matches(pattern, subject):
            return dict(response)
    return default


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> Any:
    try:
        return compiled(pattern, dot_nl=True)
    except re2.error:
        return None


def _matches(pattern: str, subject: str) -> bool:
    regex = _compile(pattern)
    return regex is not None and regex.fullmatch(subject) is not None


def _response_template(exchange: Exchange, response: Mapping[str, Any]) -> tuple[str, str]:
    """The media type and the text of the template of a response: of the type that the caller accepts, or the first."""
    templates: Mapping[str, str] = response.get("responseTemplates") or {}
    accepted = (exchange.header("accept") or "").partition(",")[0].partition(";")[0].strip().lower()
    for kind, text in templates.items():
        if kind.lower() == accepted:
            return kind, text
    return next(iter(templates.items()), (JSON, ""))
