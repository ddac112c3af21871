"""Sources of mappings: parameters of requests and answers, and the objects of templates (`$input`, `$util`, `$context`).

https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-mapping-template-reference.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/request-response-data-mappings.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-payload-encodings-workflow.html
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote_plus, unquote_plus

import orjson
from typing_extensions import override

from redrive.aws.apigateway.control.exchange import Exchange, Refusal, last_values
from redrive.aws.apigateway.mapping.velocity.values import EmptyBody, HostObject, TemplateFailed, text_of
from redrive.aws.kit.json_cursor import children_of
from redrive.model.budget import Budget, OverBudgetError

_STEP: Final = re.compile(
    r"(?P<deep>\.\.)?(?:\.?(?P<name>[^.\[\]'\"*()?@\s]+)|\[\s*'(?P<quoted>[^']*)'\s*\]|\[\s*\"(?P<double>[^\"]*)\"\s*\]"
    r"|\[\s*(?P<index>-?[0-9]{1,9})\s*\]|(?P<all>\.?\*|\[\s*\*\s*\]))"
)
_CHARS_MAX: Final = 1024

Step = tuple[bool, str | int | None]
"""True if it matches at any depth; and the name, the index, or None for all children."""


@lru_cache(maxsize=1024)
def steps_of(path: str) -> tuple[Step, ...]:
    """The steps of a path: `..a[0]` has (True, "a"), (False, 0); raises TemplateFailed for a filter or a fault."""
    text = path.strip()
    if not text.startswith("$") or len(text) > _CHARS_MAX:
        raise TemplateFailed(f"Invalid JSON path: {path[:100]}")
    at, steps = 1, []
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise TemplateFailed(f"Invalid JSON path, or one that is not offered: {path[:100]}")
        names = [match[form] for form in ("name", "quoted", "double") if match[form] is not None]
        key: str | int | None = names[0] if names else None
        if match["index"] is not None:
            key = int(match["index"])
        steps.append((match["deep"] is not None, key))
        at = match.end()
    return tuple(steps)


def look_up(budget: Budget, document: Any, path: str) -> Any:
    """The value at a path, or the list of all if the path has wildcards; None: there is none."""
    steps = steps_of(path)
    has_wildcards = any(is_deep or key is None for is_deep, key in steps)
    matches = [document]
    for is_deep, key in steps:
        budget.spend(len(matches) + 1)
        if is_deep:
            matches = _with_descendants(budget, matches)
        matches = [value for each in matches for value in _values(budget, each, key)]
    if has_wildcards:
        return matches
    return matches[0] if matches else None


def json_text(budget: Budget, document: Any, path: str) -> str:
    """The JSON of the value at a path. Wildcards may find a value several times, and each time is paid for."""
    matches = look_up(budget, document, path)
    if any(is_deep or key is None for is_deep, key in steps_of(path)):
        _spend_value(budget, matches)
    return orjson.dumps(matches).decode()


def _spend_value(budget: Budget, value: Any) -> None:
    """Pay for a value and all values in it."""
    budget.spend()
    if isinstance(value, str):
        budget.spend_chars(len(value))
    for child in children_of(value):
        _spend_value(budget, child)


def _values(budget: Budget, value: Any, key: str | int | None) -> list[Any]:
    """The values in one: all of them (None), the element of an index, or the member of a name."""
    if key is None:
        items = children_of(value)
        budget.spend(len(items))
        return items
    if isinstance(key, int):
        if isinstance(value, list) and -len(value) <= key < len(value):
            return [value[key]]
        return []
    return [value[key]] if isinstance(value, dict) and key in value else []


def _with_descendants(budget: Budget, matches: list[Any]) -> list[Any]:
    """Values and all that is in them, at any depth."""
    values: list[Any] = []
    level = list(matches)
    while level:
        budget.spend(len(level))
        values += level
        level = [child for value in level for child in children_of(value)]
    return values


_UNSAFE: Final = re.compile(r"[^A-Za-z0-9*._-]+")
#: A character may become `\u0000` or `%F0%9F%98%80`.
_GROWTH_MAX: Final = 12
_PLACES: Final = ("path", "querystring", "header")


class InputObject(HostObject):
    """`$input`: the body, and the parameters of the request.

    Attributes:
        body: The body, unchanged.
    """

    def __init__(self, exchange: Exchange, body: str) -> None:
        self._exchange = exchange
        self.body = body or EmptyBody()
        self._document: Any = None
        self._is_read = False

    @override
    def member(self, name: str) -> Any:
        """`body` alone."""
        return self.body if name == "body" else None

    @override
    def call(self, budget: Budget, name: str, arguments: list[Any]) -> Any:
        """`json`, `path` and `params`; null for other names."""
        path = text_of(budget, arguments[0]) if arguments else ""
        match name:
            case "json":
                return json_text(budget, self._read(budget), path or "$")
            case "path":
                return look_up(budget, self._read(budget), path or "$")
            case "params":
                return self._parameter(path) if arguments else self._parameters()
        return None

    def _read(self, budget: Budget) -> Any:
        """The body's value, read when it is first asked for."""
        if not self._is_read:
            budget.spend_chars(len(self.body))
            try:
                self._document = orjson.loads(str(self.body))
            except orjson.JSONDecodeError:
                self._document = self.body  # text that is no JSON is a value, too
            self._is_read = True
        return self._document

    def _parameter(self, name: str) -> str:
        """A parameter of the path, else of the query, else a header; empty if there is none of that name."""
        exchange = self._exchange
        if name in _PLACES:
            return self._parameters()[name]  # type: ignore[return-value] # a map, as Amazon's answers it
        value = exchange.parameters.get(name)
        if value is None and name in exchange.query:
            value = exchange.query[name][-1]
        return (exchange.header(name) if value is None else value) or ""

    def _parameters(self) -> dict[str, dict[str, str]]:
        """The parameters of the request by where they stand."""
        exchange = self._exchange
        return {
            "path": dict(exchange.parameters),
            "querystring": last_values(exchange.query),
            "header": dict(exchange.headers),
        }


class UtilObject(HostObject):
    """`$util`: texts in other forms."""

    @override
    def call(self, budget: Budget, name: str, arguments: list[Any]) -> Any:
        """A text in another form; null for a method that does not exist."""
        method = _UTIL.get(name)
        if method is None or not arguments:
            return None
        text = text_of(budget, arguments[0])
        budget.spend_chars(_GROWTH_MAX * len(text))
        return method(text)


def _escape_javascript(text: str) -> str:
    """A text for a literal of JavaScript; Amazon's escapes single quotes as well."""
    return orjson.dumps(text).decode()[1:-1].replace("'", "\\'").replace("/", "\\/") if text else ""


def _url_encode(text: str) -> str:
    """A text as Java's URLEncoder writes it; `quote_plus` of the whole text takes six times as long."""
    return _UNSAFE.sub(lambda match: quote_plus(match[0], safe="*-._"), text)


def _parse_json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise TemplateFailed("$util.parseJson: the text is not JSON") from None


def _decode_base64(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        raise TemplateFailed("$util.base64Decode: the text is not valid Base64 of a string") from None


_UTIL: Final[Mapping[str, Callable[[str], Any]]] = {
    "escapeJavaScript": _escape_javascript,
    "parseJson": _parse_json,
    "urlEncode": _url_encode,
    "urlDecode": unquote_plus,
    "base64Encode": lambda text: base64.b64encode(text.encode()).decode(),
    "base64Decode": _decode_base64,
}
_UTIL_OBJECT: Final = UtilObject()


def variables_of(exchange: Exchange, body: str) -> dict[str, Any]:
    """The variables of a template for a body: of the request, or of the integration's answer."""
    context = exchange.context()
    for name, members in (
        ("requestOverride", ("header", "path", "querystring")),
        ("responseOverride", ("header",)),
    ):
        context[name] = {member: {} for member in members}
    message = context["error"].get("message")
    if message is not None:
        context["error"]["messageString"] = orjson.dumps(message).decode()
    return {
        "context": context,
        "input": InputObject(exchange, body),
        "stageVariables": dict(exchange.stage_place.variables),
        "util": _UTIL_OBJECT,
    }


_STEPS_MAX: Final = 20_000


def request_value(exchange: Exchange, source: str) -> str | None:
    """The value of a source for an integration's request; None: there is none."""
    if len(source) > 1 and source[0] == source[-1] == "'":
        return source[1:-1]
    origin, _, name = source.partition(".")
    if origin == "context":
        return at_path(exchange.context(), name)
    if origin == "stageVariables":
        return exchange.stage_place.variables.get(name)
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
    """The value of a parameter of an HTTP API: static, or from the request; None: there is none."""
    if not source.startswith("$"):
        return source
    origin, _, name = source.partition(".")
    if origin == "$context":
        return at_path(exchange.context(), name)
    if origin == "$stageVariables":
        return exchange.stage_place.variables.get(name)
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
    """A body, or the value at a path in it, as text; None: there is none."""
    if not path:
        return body
    try:
        document = orjson.loads(body)
        matches = look_up(Budget(_STEPS_MAX), document, path if path.startswith("$") else f"$.{path}")
    except (orjson.JSONDecodeError, TemplateFailed, OverBudgetError):
        return None
    return as_text(matches)


def response_value(exchange: Exchange, source: str, headers: Mapping[str, str], body: str) -> str | None:
    """The value of a header's source in an integration's answer, header names in lower case; None: there is none."""
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
    """The text at a path of names in a document; None: there is none."""
    value: Any = document
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return as_text(value)


def as_text(value: Any) -> str | None:
    """A value as the text of a parameter: structures as JSON."""
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


def encode_body(body: bytes, handling: str | None, *, is_binary: bool) -> bytes:
    """A body whose bytes are base64 if its handling converts them to text.

    - `handling`: `contentHandling`; None: the body is passed on as it is.
    - `is_binary`: its type is among the API's binary ones: otherwise text stays text.
    """
    return base64.b64encode(body) if handling == TO_TEXT and is_binary else body


def decode_body(body: bytes, handling: str | None, *, is_binary: bool) -> bytes:
    """A body whose base64 is decoded if its handling converts it to binary; arguments as of `encode_body`.

    Raises:
        Refusal: The text is not base64.
    """
    if handling != TO_BINARY or is_binary:
        return body
    try:
        return base64.b64decode(body.strip(), validate=True)
    except binascii.Error:
        raise Refusal("API_CONFIGURATION_ERROR", reason="Unable to base64 decode the body.") from None
