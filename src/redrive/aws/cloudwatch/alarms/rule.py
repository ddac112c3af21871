"""Rules of composite alarms: `ALARM("a") AND (OK(b) OR NOT INSUFFICIENT_DATA("arn:…"))`, `TRUE` and `FALSE`.

Source: API reference, PutCompositeAlarm, `AlarmRule`. Quotes may be left out where a name has no spaces or parentheses.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from redrive.aws.cloudwatch.alarms.records import ALARM, COMPOSITE, INSUFFICIENT_DATA, OK, Alarm

CHARS_MAX: Final = 10_240
CHILDREN_MAX: Final = 100
_DEPTH_MAX: Final = 50
_TOKEN: Final = re.compile(
    rf"\s*(?:(?P<state>{ALARM}|{OK}|{INSUFFICIENT_DATA})\s*\(\s*(?:\"(?P<quoted>[^\"]+)\"|'(?P<single>[^']+)'"
    r"|(?P<bare>[^\s()\"']+))\s*\)|(?P<word>AND|OR|NOT|TRUE|FALSE)\b|(?P<sign>[()]))"
)
_ARN: Final = re.compile(r"arn:aws[a-z-]*:cloudwatch:[^:]*:[^:]*:alarm:(.+)", re.DOTALL)


class RuleError(ValueError):
    """A rule that cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class InState:
    """True while an alarm is in a state."""

    state: str  # Which
    alarm: str  # Its name
    reference: str  # As the rule names it: by name or ARN


@dataclass(frozen=True, slots=True)
class Always:
    """`TRUE` or `FALSE`."""

    truth: bool


@dataclass(frozen=True, slots=True)
class NotRule:
    """The opposite."""

    operand: "RuleNode"


@dataclass(frozen=True, slots=True)
class Both:
    """`AND`."""

    operands: "tuple[RuleNode, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """`OR`."""

    operands: "tuple[RuleNode, ...]"


RuleNode = InState | Always | NotRule | Both | AnyOf


@lru_cache(maxsize=1024)
def read_rule(text: str) -> RuleNode:
    """Read a rule; raises RuleError, with the reason, if that cannot be done."""
    reader = _RuleReader(list(_tokens(text)))
    node = reader.either()
    if reader.next.text:
        raise RuleError(f"unexpected {reader.next.text}")
    if len({leaf.alarm for leaf in leaves(node)}) > CHILDREN_MAX:
        raise RuleError(f"more than {CHILDREN_MAX} alarms")
    return node


def holds(node: RuleNode, states: Mapping[str, str]) -> bool:
    """Returns whether a rule is true of the states of alarms by their names; one that is not there is in no state."""
    if isinstance(node, InState):
        return states.get(node.alarm) == node.state
    if isinstance(node, Always):
        return node.truth
    if isinstance(node, NotRule):
        return not holds(node.operand, states)
    if isinstance(node, Both):
        return all(holds(operand, states) for operand in node.operands)
    return any(holds(operand, states) for operand in node.operands)


def leaves(node: RuleNode) -> Iterator[InState]:
    """The alarms and states that a rule asks for, in its order."""
    if isinstance(node, InState):
        yield node
    elif isinstance(node, NotRule):
        yield from leaves(node.operand)
    elif isinstance(node, Both | AnyOf):
        for operand in node.operands:
            yield from leaves(operand)


def children_of(alarm: Alarm) -> list[str]:
    """The names of the alarms in a composite alarm's rule, each once; of any other none."""
    if alarm.kind != COMPOSITE:
        return []
    return list(dict.fromkeys(leaf.alarm for leaf in leaves(read_rule(alarm.given["AlarmRule"]))))


def alarm_name(text: str) -> str:
    """The name of an alarm that is named by name or ARN."""
    match = _ARN.fullmatch(text)
    return text if match is None else match[1]


class _RuleToken(NamedTuple):
    text: str
    leaf: InState | None = None


def _tokens(text: str) -> Iterator[_RuleToken]:
    at, text = 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise RuleError(f"unexpected {text[at : at + 30].strip()}")
        at = match.end()
        if match["state"]:
            name = match["quoted"] or match["single"] or match["bare"]
            yield _RuleToken(match[0].strip(), InState(match["state"], alarm_name(name), name))
        else:
            yield _RuleToken(match[0].strip())


class _RuleReader:
    """Reads by descent."""

    def __init__(self, tokens: list[_RuleToken]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def next(self) -> _RuleToken:
        return self._tokens[self._at] if self._at < len(self._tokens) else _RuleToken("")

    def either(self) -> RuleNode:
        return self._joined("OR", self._both, AnyOf)

    def _both(self) -> RuleNode:
        return self._joined("AND", self._operand, Both)

    def _joined(
        self, word: str, operand: Callable[[], RuleNode], join: Callable[[tuple[RuleNode, ...]], RuleNode]
    ) -> RuleNode:
        operands = [operand()]
        while self.next.text == word:
            self._at += 1
            operands.append(operand())
        return join(tuple(operands)) if len(operands) > 1 else operands[0]

    def _operand(self) -> RuleNode:
        token = self.next
        self._at += 1
        if token.leaf is not None:
            return token.leaf
        if token.text in ("TRUE", "FALSE"):
            return Always(token.text == "TRUE")
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise RuleError(f"more than {_DEPTH_MAX} levels")
        if token.text == "NOT":
            node: RuleNode = NotRule(self._operand())
        elif token.text == "(":
            node = self.either()
            if self.next.text != ")":
                raise RuleError(f") expected, not {self.next.text or 'the end'}")
            self._at += 1
        else:
            raise RuleError(f"unexpected {token.text or 'end of the rule'}")
        self._depth -= 1
        return node
