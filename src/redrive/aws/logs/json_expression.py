"""The expressions of filter patterns on JSON: `$.status = "FAILURE" && $.attempts > 1`."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import orjson
from typing_extensions import override

from redrive.aws.logs.errors import invalid
from redrive.aws.logs.regexes import BETWEEN_PERCENTS, read_regex
from redrive.model.language import LanguageReader

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
    reader = _PatternReader(_PatternReader.tokens(text, _TOKEN))
    test = reader.either()
    reader.finish()
    return test


def refuse() -> NoReturn:
    """Refuse a pattern; raises AwsError (`InvalidParameterException`)."""
    raise invalid("Invalid filter pattern")


class _PatternReader(LanguageReader):
    """`||` binds least, then `&&`, then parentheses and comparisons."""

    depth_max = 100

    @classmethod
    @override
    def refusal(cls, reason: str) -> Exception:
        return invalid("Invalid filter pattern")  # the service gives no reason

    def either(self) -> Test:
        tests = self.several(self._conjunction, "||")
        return tests[0] if len(tests) == 1 else lambda document: any(test(document) for test in tests)

    def _conjunction(self) -> Test:
        tests = self.several(self._primary, "&&")
        return tests[0] if len(tests) == 1 else lambda document: all(test(document) for test in tests)

    def _primary(self) -> Test:
        """Read a test of one selector, or what stands in parentheses."""
        if self.take("("):
            with self.nested():
                test = self.either()
            self.need(")")
            return test
        path = _path(self.expect("selector").text)
        if self.next.kind == "word":
            return _state(path, self.advance().text, self.expect("word").text)
        sign = self.need("=", "!=", *_ORDER)
        literal = self.advance()
        compares = comparison(sign, literal.kind, literal.text)
        return lambda document: compares(_value(document, path))


def _path(selector: str) -> list[str | int]:
    steps = _STEP.findall(selector)
    return [int(index) if index else name or quoted for name, index, quoted in steps]


def _value(document: Any, path: list[str | int]) -> Any:  # JSON
    """The value at a path in a document; `_ABSENT` if there is none."""
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
    """The test of `IS NULL`, `IS TRUE`, `IS FALSE` or `NOT EXISTS`."""
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
    """The value of a member of a JSON document, as text; None if it has no such member, or the selector is malformed."""
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
    matches = read_regex(literal)
    if matches is None:
        refuse()
    return lambda value: isinstance(value, str | int | float) and matches(_text(value))


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _fits(text: str, first: str, others: Sequence[str]) -> bool:
    """True if a text is these parts of a pattern, anything in between; in linear time, unlike a regular expression."""
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
