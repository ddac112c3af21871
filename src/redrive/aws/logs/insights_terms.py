"""Expressions of Logs Insights: fields, operators and functions, read into functions of a row."""

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import re2

from redrive.aws.kit.regexes import compiled
from redrive.aws.logs.errors import error
from redrive.aws.logs.insights_values import (
    COMPARISONS,
    FUNCTIONS,
    Compute,
    Fields,
    Value,
    calculated,
    comparison,
    contains,
    matches,
    moment_text,
    nought,
    unquoted,
)
from redrive.aws.logs.regexes import MEMORY_BYTES

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`(?P<quoted>[^`]+)`
    |(?P<time>\d+(?:ms|s|m|h|d|w)\b)|(?P<number>\d+(?:\.\d+)?)
    |(?P<name>[@A-Za-z_][\w.@]*)|(?P<sign>!=|<=|>=|=~|[-+*/%^=<>(),|\[\]]))\s*""",
    re.VERBOSE | re.DOTALL,
)
_REGEX: Final = re.compile(r"\s*/(?P<regex>(?:[^/\\]|\\.)+)/\s*", re.DOTALL)
_NAMED: Final = re.compile(r"\(\?<(?=[A-Za-z_])")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DEPTH_MAX: Final = 40
MOMENTS: Final = frozenset({"@timestamp", "@ingestionTime"})


class Term(NamedTuple):
    """One expression."""

    name: str  # As it was written, which its column is called
    value: Compute  # Computes it of a row


class InsightsToken(NamedTuple):
    """A token, and where it stands in the query."""

    kind: str
    text: str
    begin: int
    end: int


def malformed(text: str) -> Exception:
    """The query cannot be read."""
    return error("MalformedQueryException", text)


def tokens_of(query: str) -> list[InsightsToken]:
    """The tokens of a query; raises AwsError (`MalformedQueryException`)."""
    tokens: list[InsightsToken] = []
    at, end = 0, len(query.rstrip())
    command = 0  # the place of the first token of the command at hand
    while at < end:
        may_be_regex = _may_be_regex(tokens, command)
        token = (_REGEX.match(query, at) if may_be_regex else None) or _TOKEN.match(query, at)
        if token is None or token.lastgroup is None:
            raise malformed(f"unexpected symbol found {query[at:].strip()[:20]} at position {at}")
        kind = token.lastgroup
        tokens.append(InsightsToken(kind, token[kind], token.start(kind), token.end(kind)))
        if kind == "sign" and token[kind] == "|":
            command = len(tokens)
        at = token.end()
    return tokens


def _may_be_regex(before: Sequence[InsightsToken], command: int) -> bool:
    """True if a slash after these tokens, of which a command is the last part, begins a regular expression."""
    if before and before[-1].text.lower() in ("like", "=~"):
        return True
    return len(before) > command and before[command].text.lower() == "parse"


def regex(text: str) -> Any:
    """A regular expression, compiled by RE2, which takes time in proportion to the text.

    Raises:
        AwsError: `MalformedQueryException`.
    """
    try:
        return compiled(_NAMED.sub("(?P<", text), memory_bytes=MEMORY_BYTES)
    except re2.error as invalid:
        raise malformed(f"invalid regular expression: {invalid}") from None


class InsightsReader:
    """Reads the tokens of one command."""

    def __init__(self, query: str, tokens: Sequence[InsightsToken]) -> None:
        self._query = query
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def next(self) -> InsightsToken:
        """The next token."""
        return self._tokens[self._at] if self._at < len(self._tokens) else InsightsToken("end", "", 0, 0)

    def take(self, *texts: str) -> bool:
        """Pass over a token if it is one of these, whatever their capitals."""
        taken = self.next.kind in ("name", "sign") and self.next.text.lower() in texts
        self._at += taken
        return taken

    def expect(self, *kinds: str) -> str:
        """The text of the next token, which has to be of one of these kinds."""
        token = self.next
        if token.kind not in kinds:
            raise malformed(f"unexpected symbol found {token.text or 'end of the query'}")
        self._at += 1
        return token.text

    def need(self, text: str) -> None:
        """Pass over a token that has to be there."""
        if not self.take(text):
            raise malformed(f"{text} expected, not {self.next.text or 'the end of the query'}")

    def end(self) -> None:
        """Make sure that nothing is left."""
        if self.next.kind != "end":
            raise malformed(f"unexpected symbol found {self.next.text}")

    def listed(self, read: Callable[[], Any]) -> list[Any]:
        """Several, with commas between them."""
        terms = [read()]
        while self.take(","):
            terms.append(read())
        return terms

    def term(self) -> Term:
        """An expression, and the name behind `as`."""
        first = self.next
        value = self.either()
        last = self._tokens[self._at - 1]
        name = first.text if first is last else self._query[first.begin : last.end]
        return Term(self.expect("name", "quoted") if self.take("as") else name, value)

    # ---- operators ---------------------------------------------------------------------------------------

    def either(self) -> Compute:
        """An expression whose operator binds least."""
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise malformed("the query is nested too deeply")
        operands = [self._both()]
        while self.take("or"):
            operands.append(self._both())
        self._depth -= 1
        return operands[0] if len(operands) == 1 else lambda row: any(each(row) for each in operands)

    def _both(self) -> Compute:
        operands = [self._not()]
        while self.take("and"):
            operands.append(self._not())
        return operands[0] if len(operands) == 1 else lambda row: all(each(row) for each in operands)

    def _not(self) -> Compute:
        negated = False
        while self.take("not"):
            negated = not negated
        operand = self._compared()
        return (lambda row: not operand(row)) if negated else operand

    def _compared(self) -> Compute:
        left = self._sum()
        if self.take("like", "=~"):
            return self._like(left)
        if self.take("not"):
            if self.take("like"):
                contains = self._like(left)
                return lambda row: not contains(row)
            self.need("in")
            inside = self._inside(left)
            return lambda row: not inside(row)
        if self.take("in"):
            return self._inside(left)
        sign = self.next.text
        if sign not in COMPARISONS:
            return left
        self._at += 1
        return comparison(sign, left, self._sum())

    def _like(self, left: Compute) -> Compute:
        kind, text = self.next.kind, self.expect("text", "regex")
        return contains(left, text) if kind == "text" else matches(left, regex(text))

    def _inside(self, left: Compute) -> Compute:
        self.need("[")
        choices = self.listed(self._sum)
        self.need("]")
        equals = [comparison("=", left, choice) for choice in choices]
        return lambda row: any(equal(row) for equal in equals)

    def _sum(self) -> Compute:
        return self._chain(self._product, ("+", "-"))

    def _product(self) -> Compute:
        return self._chain(self._operand, ("*", "/", "%", "^"))

    def _chain(self, operand: Callable[[], Compute], signs: Sequence[str]) -> Compute:
        first = operand()
        others: list[tuple[str, Compute]] = []
        while self.next.kind == "sign" and self.next.text in signs:
            others.append((self.expect("sign"), operand()))
        return first if not others else lambda row: calculated(first, others, row)

    def _operand(self) -> Compute:
        negated = False
        while self.take("-"):
            negated = not negated
        operand = self._plain()
        return (lambda row: calculated(nought, [("-", operand)], row)) if negated else operand

    def _plain(self) -> Compute:
        if self.take("("):
            value = self.either()
            self.need(")")
            return value
        token = self.next
        self.expect("text", "quoted", "number", "name")
        if token.kind == "text":
            text = unquoted(token.text)
            return lambda _: text
        if token.kind == "number":
            number = float(token.text)
            return lambda _: number
        if token.kind == "name" and self.take("("):
            return self._call(token.text)
        return lambda row: row.get(token.text)

    def _call(self, function: str) -> Compute:
        if function == "bin":
            width_ms = _width_ms(self.expect("time"))
            self.need(")")
            return lambda row: _binned(row, width_ms)
        arguments = [] if self.next.text == ")" else self.listed(self.either)
        self.need(")")
        definition = FUNCTIONS.get(function.lower())
        if definition is None or len(arguments) not in definition[0]:
            raise malformed(f"there is no function {function} of {len(arguments)} arguments")
        return functools.partial(_called, definition[1], arguments)


def _called(compute: Callable[..., Value], arguments: Sequence[Compute], row: Fields) -> Value:
    values = [argument(row) for argument in arguments]
    row.spend(*values)
    return compute(*values)


def _width_ms(text: str) -> int:
    number = text.rstrip("mshdw")
    width_ms = int(number) * _UNITS_MS[text[len(number) :]]
    if not width_ms:
        raise malformed("bin takes a time that is not 0")
    return width_ms


def _binned(row: Fields, width_ms: int) -> Value:
    at = row.get("@timestamp")
    return moment_text(float(at) // width_ms * width_ms) if isinstance(at, int | float) else None
