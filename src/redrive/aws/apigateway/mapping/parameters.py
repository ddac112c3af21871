"""Parameter mappings: where the parameters of what is behind a method, and the headers of an answer, come from.

https://docs.aws.amazon.com/apigateway/latest/developerguide/request-response-data-mappings.html
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from redrive.aws.apigateway.control.exchange import Exchange
from redrive.aws.apigateway.mapping.json_paths import looked_up
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
    """The value that a source of an answer's header has; None: it has none.

    Args:
        exchange: The request.
        source: The source.
        headers: Of the answer of what is behind the method, names in lower case.
        body: Of that answer.
    """
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
