"""Metric math: expressions are read once into a tree, and computed over time series by `metric_math`.

Source: CloudWatch user guide, "Using math expressions with CloudWatch metrics". What looks metrics up by itself
(`SEARCH`, `SELECT`, bands of anomalies, Contributor Insights) is refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from typing_extensions import override

from redrive.model.language import LanguageReader

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)|(?P<word>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')|(?P<sign>&&|\|\||>=|<=|==|!=|[-+*/^<>()\[\],]))",
    re.ASCII,
)
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


# Alarms compute theirs each minute; 1,000 distinct ones are a few MB.
@lru_cache(maxsize=1024)
def read_expression(text: str) -> Node:
    """Read an expression; raises ExpressionError, with the reason, if that cannot be done."""
    reader = _MathReader(_MathReader.tokens(text, _TOKEN))
    node = reader.expression()
    reader.finish()
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


class _MathReader(LanguageReader):
    depth_max = 40
    end = "end of the expression"
    _operations = 0

    @classmethod
    @override
    def refusal(cls, reason: str) -> ExpressionError:
        return ExpressionError(reason)

    def expression(self) -> Node:
        """An operand, or several joined by operators."""
        with self.nested():
            return self._binary(0)

    def _binary(self, level: int) -> Node:
        """An operand, or several joined by operators of a level or of those that bind more."""
        if level == len(_LEVELS):
            return self._negation()
        node = self._binary(level + 1)
        while sign := self.take(*_LEVELS[level]):
            self._operations += 1
            if self._operations > _OPERATIONS_MAX:
                raise ExpressionError(f"more than {_OPERATIONS_MAX} operators")
            node = BinaryOperation(_LEVELS[level][sign], node, self._binary(level + 1))
        return node

    def _negation(self) -> Node:
        if not self.take("-"):
            return self._power()
        with self.nested():
            return BinaryOperation("-", Number(0.0), self._negation())

    def _power(self) -> Node:
        """Read `base ^ exponent`, which groups from the right: `2 ^ 3 ^ 2` is `2 ^ 9`."""
        base = self._operand()
        if not self.take("^"):
            return base
        with self.nested():
            return BinaryOperation("^", base, self._negation())

    def _operand(self) -> Node:
        if self.take("("):
            node = self.expression()
            self.need(")")
            return node
        if self.take("["):
            return Many(tuple(self.until("]", self.expression)))
        token = self.expect("number", "text", "word")
        if token.kind == "number":
            return Number(float(token.text))
        if token.kind == "text":
            return TextLiteral(token.text[1:-1])
        return self._call(token.text) if self.take("(") else Name(token.text)

    def _call(self, function: str) -> Node:
        if function in _NOT_HERE:
            raise ExpressionError(f"{function} is not available")
        if function not in FUNCTIONS:
            raise ExpressionError(f"there is no function {function}")
        arguments = tuple(self.until(")", self.expression))
        least, most = FUNCTIONS[function]
        if not least <= len(arguments) <= most:
            raise ExpressionError(f"{function} takes {least} to {most} arguments, not {len(arguments)}")
        return FunctionCall(function, arguments)
