"""Expressions of Logs Insights: fields, operators and functions, read into functions of a row."""

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import re2
from typing_extensions import override

from redrive.aws.kit.regexes import compiled
from redrive.aws.logs.errors import error
from redrive.aws.logs.insights_values import (
    COMPARISONS,
    FUNCTIONS,
    Compute,
    Fields,
    Value,
    calculate,
    comparison,
    contains,
    matches,
    moment_text,
    nought,
    unquoted,
)
from redrive.aws.logs.regexes import MEMORY_BYTES
from redrive.model.language import LanguageReader, LanguageToken, token_of

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`(?P<quoted>[^`]+)`
    |(?P<time>\d+(?:ms|s|m|h|d|w)\b)|(?P<number>\d+(?:\.\d+)?)
    |(?P<word>[@A-Za-z_][\w.@]*)|(?P<sign>!=|<=|>=|=~|[-+*/%^=<>(),|\[\]]))\s*""",
    re.VERBOSE | re.DOTALL,
)
_REGEX: Final = re.compile(r"\s*/(?P<regex>(?:[^/\\]|\\.)+)/\s*", re.DOTALL)
_NAMED: Final = re.compile(r"\(\?<(?=[A-Za-z_])")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
MOMENTS: Final = frozenset({"@timestamp", "@ingestionTime"})


class Term(NamedTuple):
    """One expression."""

    name: str  # As it was written, which its column is called
    value: Compute  # Computes it of a row


def malformed(text: str) -> Exception:
    """The query cannot be read."""
    return error("MalformedQueryException", text)


def tokens_of(query: str) -> list[LanguageToken]:
    """The tokens of a query; raises AwsError (`MalformedQueryException`)."""
    tokens: list[LanguageToken] = []
    at, end = 0, len(query.rstrip())
    command = 0  # the place of the first token of the command at hand
    while at < end:
        may_be_regex = _may_be_regex(tokens, command)
        match = (_REGEX.match(query, at) if may_be_regex else None) or _TOKEN.match(query, at)
        if match is None:
            raise malformed(f"unexpected symbol found {query[at:].strip()[:20]} at position {at}")
        tokens.append(token_of(match, any_case=True))
        if tokens[-1].sign == "|":
            command = len(tokens)
        at = match.end()
    return tokens


def _may_be_regex(before: Sequence[LanguageToken], command: int) -> bool:
    """True if a slash after these tokens, of which a command is the last part, begins a regular expression."""
    if before and before[-1].sign in ("like", "=~"):
        return True
    return len(before) > command and before[command].sign == "parse"


def regex(text: str) -> Any:
    """A regular expression, compiled by RE2, which takes time in proportion to the text.

    Raises:
        AwsError: `MalformedQueryException`.
    """
    try:
        return compiled(_NAMED.sub("(?P<", text), memory_bytes=MEMORY_BYTES)
    except re2.error as invalid:
        raise malformed(f"invalid regular expression: {invalid}") from None


class InsightsReader(LanguageReader):
    """Reads the tokens of one command."""

    depth_max = 40
    end = "end of the query"

    def __init__(self, query: str, tokens: Sequence[LanguageToken]) -> None:
        super().__init__(tokens)
        self._query = query

    @classmethod
    @override
    def refusal(cls, reason: str) -> Exception:
        """A `MalformedQueryException`."""
        return malformed(reason)

    @override
    def unexpected(self) -> Exception:
        """The same, in the service's own words."""
        return malformed(f"unexpected symbol found {self.next.text}")

    def term(self) -> Term:
        """An expression, and the name behind `as`."""
        first = self.next
        value = self.either()
        last = self._tokens[self._at - 1]
        name = first.text if first is last else self._query[first.begin : last.end]
        return Term(self.expect("word", "quoted").text if self.take("as") else name, value)

    # ---- operators ---------------------------------------------------------------------------------------

    def either(self) -> Compute:
        """An expression whose operator binds least."""
        with self.nested():
            operands = self.several(self._conjunction, "or")
        return operands[0] if len(operands) == 1 else lambda row: any(each(row) for each in operands)

    def _conjunction(self) -> Compute:
        operands = self.several(self._not, "and")
        return operands[0] if len(operands) == 1 else lambda row: all(each(row) for each in operands)

    def _not(self) -> Compute:
        is_negated = False
        while self.take("not"):
            is_negated = not is_negated
        operand = self._comparison()
        return (lambda row: not operand(row)) if is_negated else operand

    def _comparison(self) -> Compute:
        left = self._sum()
        if self.take("like", "=~"):
            return self._like(left)
        if self.take("in"):
            return self._inside(left)
        if self.take("not"):
            holds = self._inside(left) if self.need("like", "in") == "in" else self._like(left)
            return lambda row: not holds(row)
        sign = self.take(*COMPARISONS)
        return comparison(sign, left, self._sum()) if sign else left

    def _like(self, left: Compute) -> Compute:
        token = self.expect("text", "regex")
        return contains(left, token.text) if token.kind == "text" else matches(left, regex(token.text))

    def _inside(self, left: Compute) -> Compute:
        """Read the list behind `in`: true if one of its values equals the left one."""
        self.need("[")
        choices = self.several(self._sum, ",")
        self.need("]")
        equals = [comparison("=", left, choice) for choice in choices]
        return lambda row: any(equal(row) for equal in equals)

    def _sum(self) -> Compute:
        return self._chain(self._product, ("+", "-"))

    def _product(self) -> Compute:
        return self._chain(self._operand, ("*", "/", "%", "^"))

    def _chain(self, operand: Callable[[], Compute], signs: Sequence[str]) -> Compute:
        """Read operands with operators of one precedence between them, which group from the left."""
        first = operand()
        others: list[tuple[str, Compute]] = []
        while sign := self.take(*signs):
            others.append((sign, operand()))
        return first if not others else lambda row: calculate(first, others, row)

    def _operand(self) -> Compute:
        is_negated = False
        while self.take("-"):
            is_negated = not is_negated
        operand = self._plain()
        return (lambda row: calculate(nought, [("-", operand)], row)) if is_negated else operand

    def _plain(self) -> Compute:
        """Read a field, a text, a number, a call, or what stands in parentheses."""
        if self.take("("):
            value = self.either()
            self.need(")")
            return value
        token = self.expect("text", "quoted", "number", "word")
        if token.kind == "text":
            text = unquoted(token.text)
            return lambda _: text
        if token.kind == "number":
            number = float(token.text)
            return lambda _: number
        if token.kind == "word" and self.take("("):
            return self._call(token.text)
        return lambda row: row.get(token.text)

    def _call(self, function: str) -> Compute:
        if function == "bin":
            width_ms = _width_ms(self.expect("time").text)
            self.need(")")
            return lambda row: _bin_of(row, width_ms)
        arguments = self.until(")", self.either)
        definition = FUNCTIONS.get(function.lower())
        if definition is None or len(arguments) not in definition[0]:
            raise malformed(f"there is no function {function} of {len(arguments)} arguments")
        return functools.partial(_call_function, definition[1], arguments)


def _call_function(compute: Callable[..., Value], arguments: Sequence[Compute], row: Fields) -> Value:
    values = [argument(row) for argument in arguments]
    row.spend(*values)
    return compute(*values)


def _width_ms(text: str) -> int:
    """The milliseconds of a time such as `5m`; raises AwsError if it is 0."""
    number = text.rstrip("mshdw")
    width_ms = int(number) * _UNITS_MS[text[len(number) :]]
    if not width_ms:
        raise malformed("bin takes a time that is not 0")
    return width_ms


def _bin_of(row: Fields, width_ms: int) -> Value:
    at = row.get("@timestamp")
    return moment_text(float(at) // width_ms * width_ms) if isinstance(at, int | float) else None
