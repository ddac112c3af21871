r"""Filter patterns, as far as Redrive knows them ("Filter pattern syntax", CloudWatch Logs user guide).

    ERROR "out of memory"        every term and phrase occurs in the message, capitals as they stand
    ?ERROR ?WARN                 one of them does; beside a term without question mark they are ignored
    ERROR -Retry                 the first does and the second does not
    { $.status = "FAILURE" }     the message is a JSON object whose member is that; `*` stands for anything
    { $.delivery.statusCode >= 500 && ($.attempts > 1 || $.tags[0] != a*) }
    { $.redrivePolicy IS NULL }, `IS TRUE`, `IS FALSE`, `NOT EXISTS`

Regular expressions (`%…%`) and patterns for columns (`[ip, user, …]`) are refused, like what cannot be read at all.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import orjson

from redrive.protocols.aws.logs.errors import invalid

Matches = Callable[[str], bool]
_Test = Callable[[Any], bool]  # of a JSON document

_TERM: Final = re.compile(r'\s*([?-]?)(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))')
_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<selector>\$(?:\.[\w:-]+|\[\d+\]|\["[^"]*"\])+)
    |(?P<sign>&&|\|\||!=|>=|<=|[()=<>])
    |"(?P<string>(?:[^"\\]|\\.)*)"
    |(?P<word>[^\s()&|=!<>"%]+)
    )\s*""",
    re.VERBOSE,
)
_STEP: Final = re.compile(r'\.([\w:-]+)|\[(\d+)\]|\["([^"]*)"\]')
_ORDER: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_STATES: Final[Mapping[str, object]] = {"NULL": None, "TRUE": True, "FALSE": False}
_ABSENT: Final = object()


def read_pattern(text: str) -> Matches:
    """The test that a pattern is.

    Raises:
        AwsError: `InvalidParameterException`.
    """
    pattern = text.strip()
    if pattern.startswith("{") and pattern.endswith("}"):
        try:
            return _on_json(_Reader(pattern[1:-1]).whole())
        except RecursionError:  # a thousand parentheses
            _refuse()
    if pattern.startswith(("[", "{", "%")):
        _refuse()
    return _terms(pattern)


def _refuse() -> NoReturn:
    raise invalid("Invalid filter pattern")


# ---- terms -----------------------------------------------------------------------------------------------------


def _terms(pattern: str) -> Matches:
    groups: dict[str, list[str]] = {"": [], "?": [], "-": []}
    at = 0
    while at < len(pattern):
        found = _TERM.match(pattern, at)
        if found is None:
            _refuse()
        phrase = found[2] if found[3] is None else found[3]
        groups[found[1]].append(re.sub(r"\\(.)", r"\1", phrase))
        at = found.end()
    needed, any_of, excluded = groups[""], groups["?"], groups["-"]

    def matches(message: str) -> bool:
        if any(term in message for term in excluded):
            return False
        if needed or not any_of:
            return all(term in message for term in needed)
        return any(term in message for term in any_of)

    return matches


# ---- JSON ------------------------------------------------------------------------------------------------------


def _on_json(test: _Test) -> Matches:
    def matches(message: str) -> bool:
        try:
            document = orjson.loads(message)
        except orjson.JSONDecodeError:
            return False
        return test(document)

    return matches


class _Reader:
    """Reads an expression; `||` binds least, then `&&`, then parentheses and comparisons."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None or found.lastgroup is None:
                _refuse()
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()

    def whole(self) -> _Test:
        """Read all there is."""
        test = self._either()
        if self._tokens:
            _refuse()
        return test

    def _either(self) -> _Test:
        tests = [self._both()]
        while self._takes("||"):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda document: any(test(document) for test in tests)

    def _both(self) -> _Test:
        tests = [self._one()]
        while self._takes("&&"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda document: all(test(document) for test in tests)

    def _one(self) -> _Test:
        if self._takes("("):
            test = self._either()
            if not self._takes(")"):
                _refuse()
            return test
        path = _path(self._next("selector"))
        kind, token = self._next_any()
        if kind == "word":
            return _state(path, token, self._next("word"))
        if token not in ("=", "!=", *_ORDER):
            _refuse()
        return _comparison(path, token, *self._next_any())

    def _takes(self, sign: str) -> bool:
        if self._tokens[:1] != [("sign", sign)]:
            return False
        del self._tokens[0]
        return True

    def _next(self, wanted: str) -> str:
        kind, token = self._next_any()
        if kind != wanted:
            _refuse()
        return token

    def _next_any(self) -> tuple[str, str]:
        if not self._tokens:
            _refuse()
        return self._tokens.pop(0)


def _path(selector: str) -> list[str | int]:
    steps = _STEP.findall(selector)
    return [int(index) if index else name or quoted for name, index, quoted in steps]


def _value(document: Any, path: list[str | int]) -> Any:  # JSON
    for step in path:
        if isinstance(step, int):
            inside = isinstance(document, list) and step < len(document)
        else:
            inside = isinstance(document, dict) and step in document
        if not inside:
            return _ABSENT
        document = document[step]
    return document


def _state(path: list[str | int], verb: str, state: str) -> _Test:
    if (verb, state) == ("NOT", "EXISTS"):
        return lambda document: _value(document, path) is _ABSENT
    if verb != "IS" or state not in _STATES:
        _refuse()
    wanted = _STATES[state]
    return lambda document: _value(document, path) is wanted


def _comparison(path: list[str | int], sign: str, kind: str, literal: str) -> _Test:
    if kind not in ("string", "word"):
        _refuse()
    number = _number(literal) if kind == "word" else None
    if order := _ORDER.get(sign):
        if number is None:
            _refuse()
        limit = number
        return lambda document: _is_number(value := _value(document, path)) and order(value, limit)
    equals = _equals(literal) if number is None else _equals_number(number)
    if sign == "=":
        return lambda document: equals(_value(document, path))
    return lambda document: (value := _value(document, path)) is not _ABSENT and not equals(value)


def _number(literal: str) -> float | None:
    try:
        return float(literal)
    except ValueError:
        return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equals_number(number: float) -> _Test:
    return lambda value: _is_number(value) and value == number


def _equals(literal: str) -> _Test:
    """Whether a value's text is that, where `*` stands for any text."""
    first, *others = re.sub(r"\\(.)", r"\1", literal).split("*")

    def equals(value: object) -> bool:
        if isinstance(value, str):
            return _fits(value, first, others)
        return isinstance(value, int | float) and _fits(orjson.dumps(value).decode(), first, others)

    return equals


def _fits(text: str, first: str, others: Sequence[str]) -> bool:
    """Whether the parts follow each other in the text: in linear time, which a regular expression would not take."""
    if not others:
        return text == first
    *middle, last = others
    end = len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last):
        return False
    at = len(first)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end
