"""Mapping of REST APIs: from a request to that of an integration, and from its answer to the method's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2

from redrive.aws.apigateway.control.exchange import Exchange, Refusal
from redrive.aws.apigateway.mapping.sources import (
    decoded,
    encoded,
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
_OF_TRANSFER: Final = frozenset({"content-length", "transfer-encoding"})
#: Headers that no request to an integration is mapped to (recorded), by whether it is an AWS service's.
_KEPT: Final = {
    False: _OF_TRANSFER,
    True: _OF_TRANSFER | {"authorization", "connection", "expect", "proxy-authenticate", "te"},
}
_STATUSES: Final = range(200, 600)


@dataclass(slots=True)
class Mapped:
    """A request to what is behind a method."""

    headers: dict[str, str]  # Names as they are written
    query: dict[str, str]  # By name
    path: dict[str, str]  # Values of the `{variables}` in the integration's URI
    body: bytes


async def mapped_request(exchange: Exchange, integration: Mapping[str, Any], body: bytes) -> Mapped:
    """The request to a deployed integration, of a caller's; `body` is already converted as the integration asks.

    Raises:
        Refusal: No template is for a body of this type, or it failed.
    """
    mapped = Mapped({}, {}, {}, body)
    places = {"header": mapped.headers, "querystring": mapped.query, "path": mapped.path}
    for target, source in (integration.get("requestParameters") or {}).items():
        kind, _, name = target.removeprefix(_TARGET).partition(".")
        value = request_value(exchange, source)
        if kind in places and name and value is not None:
            places[kind][name] = value
    template = _request_template(exchange, integration)
    if template is not None:
        payload = body.decode("utf-8", "replace")
        text, context = await _rendered(exchange, template, payload)
        overrides = _override(context, "requestOverride")
        if integration.get("type") == "MOCK":  # which has no answer but this (recorded)
            exchange.overrides = dict(_override(context, "responseOverride"))
        mapped.body = text.encode()
        for kind, values in places.items():
            values.update(_texts(overrides.get(kind)))
    for name in mapped.headers:
        if name.strip().lower() in _KEPT[integration.get("type") == "AWS"]:
            raise Refusal("API_CONFIGURATION_ERROR", reason=f"The header {name} cannot be mapped")
    mapped.headers.setdefault("Content-Type", exchange.header("content-type") or JSON)
    return mapped


def _request_template(exchange: Exchange, integration: Mapping[str, Any]) -> str | None:
    """The template for a body's type; None: the body is passed on as it is."""
    templates: Mapping[str, str] = integration.get("requestTemplates") or {}
    kind = exchange.content_type
    template = next((text for name, text in templates.items() if name.lower() == kind), None)
    if template is None:
        behaviour = integration.get("passthroughBehavior")
        if behaviour == "NEVER" or (behaviour == "WHEN_NO_TEMPLATES" and templates):
            raise Refusal("UNSUPPORTED_MEDIA_TYPE")
    return template


async def _rendered(exchange: Exchange, template: str, body: str) -> tuple[str, Any]:
    """The text of a template, and `$context` as it left it; raises Refusal if the template failed."""
    try:
        text, names = await render(exchange.place.account, template, lambda: variables_of(exchange, body))
    except TemplateFailed as failure:
        raise Refusal("API_CONFIGURATION_ERROR", reason=str(failure)) from None
    except AwsError:
        raise Refusal("THROTTLED") from None
    return text, names.get("context")


def _override(context: Any, name: str) -> Mapping[str, Any]:
    """The values that a template put in the place of the mapped parameters."""
    overrides = context.get(name) if isinstance(context, dict) else None
    return overrides if isinstance(overrides, dict) else {}


def _texts(values: Any) -> dict[str, str]:
    """The texts of an override; numbers as texts, and nothing else."""
    if not isinstance(values, dict):
        return {}
    return {
        name: str(value)
        for name, value in values.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


# ---- answers ---------------------------------------------------------------------------------------------------------


async def mapped_answer(
    exchange: Exchange, method: Mapping[str, Any], answer: ApiAnswer, binary: Sequence[str]
) -> ApiAnswer:
    """The answer of a deployed method, of its integration's; `binary` are the API's binary media types.

    Bytes become text before a template, and base64 becomes bytes after it.

    Raises:
        Refusal: No integration response matches, a template failed, or the body cannot be converted.
    """
    chosen = chosen_response(method["methodIntegration"].get("integrationResponses") or {}, answer)
    if chosen is None:
        raise Refusal(
            "API_CONFIGURATION_ERROR",
            reason="No match for output mapping and no default output mapping configured.",
        )
    handling, was_binary = chosen.get("contentHandling"), is_binary(binary, answer.media_type)
    payload = encoded(answer.body, handling, is_binary=was_binary)
    body = payload.decode("utf-8", "replace")
    headers = {"Content-Type": answer.header("content-type") or JSON}
    for target, source in (chosen.get("responseParameters") or {}).items():
        value = response_value(exchange, source, answer.headers, body)
        if target.startswith(_HEADER) and value is not None:
            headers[target.removeprefix(_HEADER)] = value
    status = int(chosen["statusCode"]) if str(chosen["statusCode"]).isdecimal() else answer.status
    status = _status(exchange.overrides.get("status"), status)
    kind, template = _response_template(exchange, chosen)
    if not template:
        return ApiAnswer(status, decoded(payload, handling, is_binary=was_binary), headers)
    text, context = await _rendered(exchange, template, body)
    overrides = _override(context, "responseOverride")
    headers = {**headers, "Content-Type": kind, **_texts(overrides.get("header"))}
    status = _status(overrides.get("status"), status)
    return ApiAnswer(status, decoded(text.encode(), handling, is_binary=was_binary), headers)


def _status(override: Any, status: int) -> int:
    """The status that a template put in the place of another, if it is one."""
    if isinstance(override, str) and override.isdecimal() and len(override) == len("200"):
        override = int(override)
    return override if isinstance(override, int) and override in _STATUSES else status


def chosen_response(responses: Mapping[str, Any], answer: ApiAnswer) -> Mapping[str, Any] | None:
    """The response whose pattern is for an answer, or the one without; None: there is neither.

    A pattern is looked at for all of the status, or of what a failed function says.
    """
    default = None
    subject = answer.failure if answer.failure is not None else str(answer.status)
    is_function = answer.failure is not None or answer.header("x-amz-executed-version") is not None
    for response in responses.values():
        pattern = response.get("selectionPattern")
        if not pattern:
            default = default or response
        elif (answer.failure is not None or not is_function) and _fits(pattern, subject):
            return dict(response)
    return default


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    try:
        return compiled(pattern, dot_nl=True)
    except re2.error:
        return None


def _fits(pattern: str, subject: str) -> bool:
    regex = _compiled(pattern)
    return regex is not None and regex.fullmatch(subject) is not None


def _response_template(exchange: Exchange, response: Mapping[str, Any]) -> tuple[str, str]:
    """The type and the text of a response's template: the one that the caller accepts, or the first."""
    templates: Mapping[str, str] = response.get("responseTemplates") or {}
    accepted = (exchange.header("accept") or "").partition(",")[0].partition(";")[0].strip().lower()
    for kind, text in templates.items():
        if kind.lower() == accepted:
            return kind, text
    return next(iter(templates.items()), (JSON, ""))
