"""The expressions of filter patterns on JSON: `$.status = "FAILURE" && $.attempts > 1`."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import orjson

from redrive.aws.logs.errors import invalid
from redrive.aws.logs.regexes import BETWEEN_PERCENTS, read_regex

Test = Callable[[Any], bool]  # of a JSON document

_TOKEN: Final = re.compile(
    rf"""\s*(?:
    (?P<selector>\$(?:\.[\w:-]+|\[\d+\]|\["[^"]*"\])+)
    |(?P<sign>&&|\|\||!=|>=|<=|[()=<>])
    |"(?P<string>(?:[^"\\]|\\.)*)"
    |{BETWEEN_PERCENTS}
    |(?P<word>[^\s()&|=!<>"%]+)
    )\s*""",
    re.VERBOSE,
)
_SELECTOR: Final = re.compile(r'\$(?:\.[\w:-]+|\[\d+\]|\["[^"]*"\])+')
_STEP: Final = re.compile(r'\.([\w:-]+)|\[(\d+)\]|\["([^"]*)"\]')
_ORDER: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_STATES: Final[Mapping[str, object]] = {"NULL": None, "TRUE": True, "FALSE": False}
_ABSENT: Final = object()


def read_expression(text: str) -> Test:
    """The test that an expression is; raises AwsError (`InvalidParameterException`)."""
    try:
        return _PatternReader(text).whole()
    except RecursionError:  # a thousand parentheses
        refuse()


def refuse() -> NoReturn:
    """Refuse a pattern; raises AwsError (`InvalidParameterException`)."""
    raise invalid("Invalid filter pattern")


class _PatternReader:
    """Reads an expression; `||` binds least, then `&&`, then parentheses and comparisons."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                refuse()
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()

    def whole(self) -> Test:
        """Read all there is."""
        test = self._either()
        if self._tokens:
            refuse()
        return test

    def _either(self) -> Test:
        tests = [self._both()]
        while self._takes("||"):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda document: any(test(document) for test in tests)

    def _both(self) -> Test:
        tests = [self._primary()]
        while self._takes("&&"):
            tests.append(self._primary())
        return tests[0] if len(tests) == 1 else lambda document: all(test(document) for test in tests)

    def _primary(self) -> Test:
        if self._takes("("):
            test = self._either()
            if not self._takes(")"):
                refuse()
            return test
        path = _path(self._next("selector"))
        kind, token = self._next_any()
        if kind == "word":
            return _state(path, token, self._next("word"))
        if token not in ("=", "!=", *_ORDER):
            refuse()
        compares = comparison(token, *self._next_any())
        return lambda document: compares(_value(document, path))

    def _takes(self, sign: str) -> bool:
        if self._tokens[:1] != [("sign", sign)]:
            return False
        del self._tokens[0]
        return True

    def _next(self, symbol: str) -> str:
        kind, token = self._next_any()
        if kind != symbol:
            refuse()
        return token

    def _next_any(self) -> tuple[str, str]:
        if not self._tokens:
            refuse()
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


def _state(path: list[str | int], verb: str, state: str) -> Test:
    if (verb, state) == ("NOT", "EXISTS"):
        return lambda document: _value(document, path) is _ABSENT
    if verb != "IS" or state not in _STATES:
        refuse()
    expected_value = _STATES[state]
    return lambda document: _value(document, path) is expected_value


def comparison(sign: str, kind: str, literal: str) -> Test:
    """The test of a value against a literal by a sign (`=`, `!=`, `<` …); raises AwsError if there is no such test.

    The literal is a `string` if it stood in quotes, a `regex` between percent signs, else a `word`; `*` is any text.
    """
    if kind not in ("string", "word", "regex"):
        refuse()
    number = _number(literal) if kind == "word" else None
    if order := _ORDER.get(sign):
        if number is None:
            refuse()
        limit = number
        return lambda value: _is_number(value) and order(value, limit)
    equals = _test(kind, literal, number)
    if sign == "=":
        return equals
    return lambda value: value is not _ABSENT and not equals(value)


def selectors_in(text: str) -> list[str]:
    """The selectors that an expression names."""
    return [match["selector"] for match in _TOKEN.finditer(text) if match["selector"]]


def regexes_in(text: str) -> int:
    """The number of regular expressions in an expression."""
    return sum(match["regex"] is not None for match in _TOKEN.finditer(text))


def text_at(document: Any, selector: str) -> str | None:
    """The value of a member of a JSON document, as text; None if there is none, or the selector is none."""
    if not _SELECTOR.fullmatch(selector):
        return None
    value = _value(document, _path(selector))
    if value is _ABSENT or value is None:
        return None
    return _text(value) if isinstance(value, str | int | float) else orjson.dumps(value).decode()


def _number(literal: str) -> float | None:
    try:
        return float(literal)
    except ValueError:
        return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equals_number(number: float) -> Test:
    return lambda value: _is_number(value) and value == number


def _equals(literal: str) -> Test:
    """Returns whether a value has a text, where `*` stands for any text."""
    first, *others = re.sub(r"\\(.)", r"\1", literal).split("*")

    def equals(value: object) -> bool:
        if isinstance(value, str):
            return _fits(value, first, others)
        return isinstance(value, int | float) and _fits(_text(value), first, others)

    return equals


def _test(kind: str, literal: str, number: float | None) -> Test:
    if kind == "regex":
        return _finds(literal)
    return _equals(literal) if number is None else _equals_number(number)


def _finds(literal: str) -> Test:
    """Returns whether a regular expression is found in a value; raises AwsError (`InvalidParameterException`)."""
    found_in = read_regex(literal)
    if found_in is None:
        refuse()
    return lambda value: isinstance(value, str | int | float) and found_in(_text(value))


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _fits(text: str, first: str, others: Sequence[str]) -> bool:
    """Returns whether the parts follow each other in the text, in linear time; a regular expression takes longer."""
    if not others:
        return text == first
    *middle, last = others
    end = len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last):
        return False
    at = len(first)
    for part in middle:
        position = text.find(part, at, end)
        if position < 0:
            return False
        at = position + len(part)
    return at <= end
