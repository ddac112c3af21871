"""Rules of composite alarms: `ALARM("a") AND (OK(b) OR NOT INSUFFICIENT_DATA("arn:…"))`, `TRUE` and `FALSE`.

Source: API reference, PutCompositeAlarm, `AlarmRule`. Quotes may be left out where a name has no spaces or parentheses.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from typing_extensions import override

from redrive.aws.cloudwatch.alarms.records import ALARM, COMPOSITE, INSUFFICIENT_DATA, OK, Alarm
from redrive.model.language import LanguageReader

CHARS_MAX: Final = 10_240
CHILDREN_MAX: Final = 100
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<quoted>\"[^\"]+\"|'[^']+')|(?P<word>[^\s()\"']+)|(?P<sign>[()]))",
)
_STATES: Final = (ALARM, OK, INSUFFICIENT_DATA)
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
    reader = _RuleReader(_RuleReader.tokens(text, _TOKEN))
    node = reader.either()
    reader.finish()
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


class _RuleReader(LanguageReader):
    depth_max = 50
    end = "end of the rule"

    @classmethod
    @override
    def refusal(cls, reason: str) -> RuleError:
        return RuleError(reason)

    def either(self) -> RuleNode:
        operands = self.several(self._both, "OR")
        return AnyOf(tuple(operands)) if len(operands) > 1 else operands[0]

    def _both(self) -> RuleNode:
        operands = self.several(self._operand, "AND")
        return Both(tuple(operands)) if len(operands) > 1 else operands[0]

    def _operand(self) -> RuleNode:
        if state := self.take(*_STATES):
            return self._in_state(state)
        if word := self.take("TRUE", "FALSE"):
            return Always(word == "TRUE")
        with self.nested():
            if self.take("NOT"):
                return NotRule(self._operand())
            if not self.take("("):
                raise self.unexpected()
            node = self.either()
            self.need(")")
            return node

    def _in_state(self, state: str) -> InState:
        self.need("(")
        name = self.expect("quoted", "word")
        self.need(")")
        reference = name.text[1:-1] if name.kind == "quoted" else name.text
        return InState(state, alarm_name(reference), reference)
