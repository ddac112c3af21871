"""Metric math: expressions are read once into a tree, and computed over time series by `metric_math`.

Source: CloudWatch user guide, "Using math expressions with CloudWatch metrics". What looks metrics up by itself
(`SEARCH`, `SELECT`, bands of anomalies, Contributor Insights) is refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)|(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')|(?P<sign>&&|\|\||>=|<=|==|!=|[-+*/^<>()\[\],]))",
    re.ASCII,
)
_DEPTH_MAX: Final = 40
_OPERATIONS_MAX: Final = 200
_NOT_HERE: Final = frozenset({"SEARCH", "SELECT", "ANOMALY_DETECTION_BAND", "INSIGHT_RULE_METRIC"})
#: How many arguments each function takes: the fewest and the most.
FUNCTIONS: Final[dict[str, tuple[int, int]]] = {
    "ABS": (1, 1),
    "AVG": (1, 1),
    "CEIL": (1, 1),
    "DATAPOINT_COUNT": (1, 1),
    "DIFF": (1, 1),
    "FILL": (2, 2),
    "FLOOR": (1, 1),
    "IF": (2, 3),
    "MAX": (1, 1),
    "METRICS": (0, 1),
    "MIN": (1, 1),
    "PERIOD": (1, 1),
    "RATE": (1, 1),
    "RUNNING_SUM": (1, 1),
    "STDDEV": (1, 1),
    "SUM": (1, 1),
    "TIME_SERIES": (1, 1),
}
_WORDS: Final = frozenset({"REPEAT", "LINEAR"})
#: Operators from those that bind least to those that bind most, each binding to the left.
_LEVELS: Final = (
    {"OR": "OR", "||": "OR"},
    {"AND": "AND", "&&": "AND"},
    {sign: sign for sign in ("<", "<=", ">", ">=", "==", "!=")},
    {"+": "+", "-": "-"},
    {"*": "*", "/": "/"},
)


class ExpressionError(ValueError):
    """An expression that cannot be read or computed; the text says why."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Name:
    """The id of another query; or `REPEAT`, `LINEAR`."""

    name: str


@dataclass(frozen=True, slots=True)
class TextLiteral:
    """A text in quotes."""

    text: str


@dataclass(frozen=True, slots=True)
class Many:
    """Several in brackets."""

    items: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class BinaryOperation:
    """An operator between two operands."""

    sign: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function and its arguments."""

    function: str
    arguments: "tuple[Node, ...]"


Node = Number | Name | TextLiteral | Many | BinaryOperation | FunctionCall


class _MathToken(NamedTuple):
    kind: str
    text: str


# Alarms compute theirs each minute; 1,000 distinct ones are a few MB.
@lru_cache(maxsize=1024)
def read_expression(text: str) -> Node:
    """Read an expression; raises ExpressionError, with the reason, if that cannot be done."""
    reader = _MathReader(list(_tokens(text)))
    node = reader.expression(0)
    if reader.next.kind != "end":
        raise ExpressionError(f"unexpected {reader.next.text}")
    return node


def names_in(node: Node) -> Iterator[str]:
    """The ids of queries that an expression names; `METRICS` alone where it asks for all of them."""
    if isinstance(node, Name):
        if node.name not in _WORDS:
            yield node.name
    elif isinstance(node, Many):
        for item in node.items:
            yield from names_in(item)
    elif isinstance(node, BinaryOperation):
        yield from names_in(node.left)
        yield from names_in(node.right)
    elif isinstance(node, FunctionCall):
        for argument in node.arguments:
            yield from names_in(argument)


def _tokens(text: str) -> Iterator[_MathToken]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ExpressionError(f"unexpected {text[at : at + 20].strip()}")
        yield _MathToken(match.lastgroup, match[match.lastgroup])
        at = match.end()


class _MathReader:
    """Reads by descent."""

    def __init__(self, tokens: list[_MathToken]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._operations = 0

    @property
    def next(self) -> _MathToken:
        return (
            self._tokens[self._at]
            if self._at < len(self._tokens)
            else _MathToken("end", "end of the expression")
        )

    def _take(self) -> _MathToken:
        token = self.next
        self._at += 1
        return token

    def _expect(self, sign: str) -> None:
        if self.next.text != sign:
            raise ExpressionError(f"{sign} expected, not {self.next.text}")
        self._at += 1

    def expression(self, level: int) -> Node:
        """An operand, or several joined by operators of a level or of those that bind more."""
        if level == len(_LEVELS):
            return self._signed()
        self._deepen(1 if level == 0 else 0)
        node = self.expression(level + 1)
        while self.next.kind in ("sign", "name") and self.next.text in _LEVELS[level]:
            sign = _LEVELS[level][self._take().text]
            self._operations += 1
            if self._operations > _OPERATIONS_MAX:
                raise ExpressionError(f"more than {_OPERATIONS_MAX} operators")
            node = BinaryOperation(sign, node, self.expression(level + 1))
        self._depth -= 1 if level == 0 else 0
        return node

    def _deepen(self, by: int) -> None:
        self._depth += by
        if self._depth > _DEPTH_MAX:
            raise ExpressionError(f"more than {_DEPTH_MAX} levels")

    def _signed(self) -> Node:
        if self.next.text != "-":
            return self._power()
        self._take()
        self._deepen(1)
        node = BinaryOperation("-", Number(0.0), self._signed())
        self._depth -= 1
        return node

    def _power(self) -> Node:
        base = self._operand()
        if self.next.text != "^":
            return base
        self._take()
        self._deepen(1)
        node = BinaryOperation("^", base, self._signed())
        self._depth -= 1
        return node

    def _operand(self) -> Node:
        token = self._take()
        if token.kind == "number":
            return Number(float(token.text))
        if token.kind == "text":
            return TextLiteral(token.text[1:-1])
        if token.text == "(":
            node = self.expression(0)
            self._expect(")")
            return node
        if token.text == "[":
            return Many(self._arguments("]"))
        if token.kind == "name":
            return self._call(token.text) if self.next.text == "(" else Name(token.text)
        raise ExpressionError(f"unexpected {token.text}")

    def _call(self, function: str) -> Node:
        if function in _NOT_HERE:
            raise ExpressionError(f"{function} is not available")
        if function not in FUNCTIONS:
            raise ExpressionError(f"there is no function {function}")
        self._take()
        arguments = self._arguments(")")
        least, most = FUNCTIONS[function]
        if not least <= len(arguments) <= most:
            raise ExpressionError(f"{function} takes {least} to {most} arguments, not {len(arguments)}")
        return FunctionCall(function, arguments)

    def _arguments(self, end: str) -> tuple[Node, ...]:
        if self.next.text == end:
            self._take()
            return ()
        arguments = [self.expression(0)]
        while self.next.text == ",":
            self._take()
            arguments.append(self.expression(0))
        self._expect(end)
        return tuple(arguments)
