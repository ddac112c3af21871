"""Parameter mappings of integrations and answers, and conversions of their bodies between bytes and base64.

https://docs.aws.amazon.com/apigateway/latest/developerguide/request-response-data-mappings.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-payload-encodings-workflow.html
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from redrive.aws.apigateway.control.exchange import Exchange, Refusal
from redrive.aws.apigateway.mapping.template_objects import looked_up
from redrive.aws.apigateway.mapping.velocity.values import TemplateFailed
from redrive.model.budget import Budget, OverBudgetError

_STEPS_MAX: Final = 20_000


def request_value(exchange: Exchange, source: str) -> str | None:
    """The value that a source of an integration's request has; None: it has none."""
    if len(source) > 1 and source[0] == source[-1] == "'":
        return source[1:-1]
    origin, _, name = source.partition(".")
    if origin == "context":
        return at_path(exchange.context(), name)
    if origin == "stageVariables":
        return exchange.place.variables.get(name)
    kind, _, name = source.removeprefix("method.request.").partition(".")
    match kind:
        case "header" | "multivalueheader":
            return exchange.header(name)
        case "querystring":
            values = exchange.query.get(name)
            return values[-1] if values else None
        case "multivaluequerystring":
            values = exchange.query.get(name)
            return ",".join(values) if values else None
        case "path":
            return exchange.parameters.get(name)
        case "body":
            return body_value(exchange.body_text, name)
    return None


def route_value(exchange: Exchange, source: str) -> str | None:
    """The value of a parameter of an HTTP API: static, or from the request; None: it has none."""
    if not source.startswith("$"):
        return source
    origin, _, name = source.partition(".")
    if origin == "$context":
        return at_path(exchange.context(), name)
    if origin == "$stageVariables":
        return exchange.place.variables.get(name)
    kind, _, name = name.partition(".")
    match kind:
        case "body":
            return body_value(exchange.body_text, name)
        case "header":
            return exchange.header(name)
        case "path":
            return exchange.parameters.get(name) if name else exchange.path
        case "querystring":
            return ",".join(exchange.query.get(name) or ()) or None
    return None


def body_value(body: str, path: str) -> str | None:
    """A body, or what stands at a path in it, as text."""
    if not path:
        return body
    try:
        document = orjson.loads(body)
        matches = looked_up(Budget(_STEPS_MAX), document, path if path.startswith("$") else f"$.{path}")
    except (orjson.JSONDecodeError, TemplateFailed, OverBudgetError):
        return None
    return as_text(matches)


def response_value(exchange: Exchange, source: str, headers: Mapping[str, str], body: str) -> str | None:
    """The value of a header's source in an integration's answer, header names in lower case; None: it has none."""
    kind, _, name = source.removeprefix("integration.response.").partition(".")
    if source.startswith("integration.response."):
        match kind:
            case "header" | "multivalueheader":
                return headers.get(name.lower())
            case "body":
                return body_value(body, name)
        return None
    return request_value(exchange, source)


def at_path(document: Mapping[str, Any], path: str) -> str | None:
    """The text at a path of names in a document; None: nothing stands there."""
    value: Any = document
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return as_text(value)


def as_text(value: Any) -> str | None:
    """A value as a parameter has it."""
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


TO_BINARY: Final = "CONVERT_TO_BINARY"
TO_TEXT: Final = "CONVERT_TO_TEXT"
HANDLINGS: Final = (TO_BINARY, TO_TEXT)
_ANY_TYPE: Final = "*/*"


def is_binary(types: Sequence[str], kind: str) -> bool:
    """True if a media type is among an API's binary ones."""
    family = f"{kind.partition('/')[0]}/*"
    return any(each in (_ANY_TYPE, kind, family) for each in types)


def encoded(body: bytes, handling: str | None, *, is_binary: bool) -> bytes:
    """A body with its bytes as base64, if they are to be text.

    - `handling`: `contentHandling`; None: the body is passed on as it is.
    - `is_binary`: its type is among the API's binary ones: otherwise text stays text.
    """
    return base64.b64encode(body) if handling == TO_TEXT and is_binary else body


def decoded(body: bytes, handling: str | None, *, is_binary: bool) -> bytes:
    """A body of base64 as the bytes that it stands for, where it shall be binary; arguments as of `encoded`.

    Raises:
        Refusal: The text is not base64.
    """
    if handling != TO_BINARY or is_binary:
        return body
    try:
        return base64.b64decode(body.strip(), validate=True)
    except binascii.Error:
        raise Refusal("API_CONFIGURATION_ERROR", reason="Unable to base64 decode the body.") from None
