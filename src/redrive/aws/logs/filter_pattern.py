r"""Filter patterns, as far as Redrive knows them ("Filter pattern syntax", CloudWatch Logs user guide).

ERROR "out of memory"        every term and phrase occurs in the message, capitals as they stand
?ERROR ?WARN                 one of them does; beside a term without question mark they are ignored
ERROR -Retry                 the first does and the second does not
{ $.status = "FAILURE" }     the message is a JSON object whose member is that; `*` stands for anything
{ $.delivery.statusCode >= 500 && ($.attempts > 1 || $.tags[0] != a*) }
{ $.redrivePolicy IS NULL }, `IS TRUE`, `IS FALSE`, `NOT EXISTS`
[ip, user, ..., status = 4*, size > 1000]     the message has these columns: words apart by spaces, of which a text in
quotes or square brackets is one; `...` stands for as many columns as there are
%[Ee]rror-[0-9]+%            a regular expression is found in the message; `= %…%` compares members and columns,
see `regexes`
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson

from redrive.aws.logs.errors import invalid
from redrive.aws.logs.json_expression import (
    Test,
    comparison,
    read_expression,
    refuse,
    regexes_in,
    selectors_in,
    text_at,
)
from redrive.aws.logs.regexes import BETWEEN_PERCENTS, read_regex
from redrive.aws.logs.regexes import STEPS_MAX as REGEX_STEPS_MAX
from redrive.model.budget import CHARS_PER_STEP

_WORD: Final = re.compile(r'"([^"]*)"|\[([^\]]*)\]|(\S+)')
_COLUMN: Final = re.compile(r"\s*([A-Za-z_][\w.-]*|\.\.\.)?\s*(.*?)\s*", re.DOTALL)
_CONDITION: Final = re.compile(
    r'\s*(!=|>=|<=|=|<|>)\s*(?:"(?P<string>(?:[^"\\]|\\.)*)"|(?P<word>[^\s"&|%]+)|'
    + BETWEEN_PERCENTS
    + r")\s*"
)
_JOIN: Final = re.compile(r"(&&|\|\|)\s*([A-Za-z_][\w.-]*)?")
_COLUMNS_MAX: Final = 100
ANY: Final = "..."
REGEXES_MAX: Final = 2
_ALONE: Final = re.compile(BETWEEN_PERCENTS)
_TERM: Final = re.compile(r'\s*([?-]?)(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))')


@dataclass(frozen=True, slots=True)
class LogColumn:
    """One column."""

    name: str  # Empty if the pattern gives none; `...` for any number of columns
    tests: Sequence[Sequence[Test]]  # Every one of a group has to hold, for one of the groups
    regexes: int = 0  # The number of regular expressions among them

    def holds(self, word: str) -> bool:
        """True if a word may stand in the column."""
        value = _value(word)
        return not self.tests or any(all(test(value) for test in group) for group in self.tests)


class Columns:
    """A pattern for columns.

    Attributes:
        regexes: The number of regular expressions in it.
    """

    def __init__(self, columns: Sequence[LogColumn]) -> None:
        self._columns = columns
        self.regexes = sum(column.regexes for column in columns)
        names = [column.name for column in columns]
        self._gap = names.index(ANY) if ANY in names else None

    def words(self, message: str) -> dict[str, str] | None:
        """The words of a message by their columns, `$name`; None if it does not match."""
        words = [match[1] or match[2] or match[3] or "" for match in _WORD.finditer(message)]
        columns = self._columns
        if self._gap is not None:  # `...` stands for as many columns as are left
            extra = len(words) - len(columns) + 1
            if extra < 0:
                return None
            gap = [LogColumn("", ())] * extra
            columns = [*columns[: self._gap], *gap, *columns[self._gap + 1 :]]
        if len(words) != len(columns):
            return None
        if not all(column.holds(word) for column, word in zip(columns, words, strict=True)):
            return None
        pairs = zip(columns, words, strict=True)
        return {f"${column.name or position}": word for position, (column, word) in enumerate(pairs, 1)}


def read_columns(text: str) -> Columns:
    """Read what stands between the brackets; raises AwsError (`InvalidParameterException`)."""
    columns = [_column(part) for part in _split_columns(text)]
    if not columns or len(columns) > _COLUMNS_MAX or sum(column.name == ANY for column in columns) > 1:
        refuse()
    return Columns(columns)


def _split_columns(text: str) -> list[str]:
    """The parts between commas that stand neither in quotes nor between percent signs."""
    parts, quote, is_escaped = [""], "", False
    for character in text:
        if character in '"%' and quote in ("", character) and not is_escaped:
            quote = "" if quote else character
        is_escaped = character == "\\" and bool(quote) and not is_escaped
        if character == "," and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _column(part: str) -> LogColumn:
    """A column: a name, and conditions on it, `= 4*`, `>= 400 && code < 500` or several groups of them between `||`."""
    match = _COLUMN.fullmatch(part)
    if match is None:
        refuse()
    name, rest = match[1] or "", match[2]  # the rest has the conditions
    groups: list[list[Test]] = [[]]
    regexes = 0
    while rest:
        condition = _CONDITION.match(rest)
        if condition is None:
            refuse()
        kind = next(kind for kind in ("string", "word", "regex") if condition[kind] is not None)
        groups[-1].append(comparison(condition[1], kind, condition[kind]))
        regexes += kind == "regex"
        rest = rest[condition.end() :]
        if rest:
            join = _JOIN.match(rest)  # which may repeat the column's name
            if join is None or join[2] not in (None, name):
                refuse()
            if join[1] == "||":
                groups.append([])
            rest = rest[join.end() :]
            if not rest.strip():
                refuse()
    return LogColumn(name, [group for group in groups if group], regexes)


def _value(word: str) -> str | float:
    """A word as comparisons see it: a number where it is one."""
    try:
        return (int if word.isdecimal() else float)(word) if word and word[0] in "-.0123456789" else word
    except ValueError:
        return word


class LogPattern(Protocol):
    """The test that a pattern is, and the values that it names."""

    @property
    def regexes(self) -> int:
        """The number of regular expressions in it."""
        ...

    def matches(self, message: str) -> bool:
        """True if a message matches."""
        ...

    def field(self, message: str, selector: str) -> str | None:
        """The value of a field of a message, as text: `$.size` of JSON, `$size` of columns; None: it has none."""
        ...

    def fields_of(self, message: str) -> dict[str, str]:
        """The fields of a message that the pattern names."""
        ...


def match_steps(pattern: str, regexes: int, message: str) -> int:
    """The steps of trying a message on a pattern: each of its terms, or instructions, on 64 characters at a time."""
    return (1 + len(pattern) // 4 + regexes * REGEX_STEPS_MAX) * (1 + len(message) // CHARS_PER_STEP)


def read_pattern(text: str) -> LogPattern:
    """The pattern that a text is; raises AwsError (`InvalidParameterException`)."""
    pattern = _read_pattern(text.strip())
    if pattern.regexes > REGEXES_MAX:
        raise invalid(f"Invalid filter pattern: it has more than {REGEXES_MAX} regular expressions")
    return pattern


def _read_pattern(pattern: str) -> LogPattern:
    """The pattern on JSON (`{…}`), columns (`[…]`), a regular expression (`%…%`) or terms; raises AwsError."""
    if pattern.startswith("{") and pattern.endswith("}"):
        expression = pattern[1:-1]
        return _OnJson(read_expression(expression), selectors_in(expression), regexes_in(expression))
    if pattern.startswith("[") and pattern.endswith("]"):
        return _OnColumns(read_columns(pattern[1:-1]))
    if (regex_match := _ALONE.fullmatch(pattern)) is not None:
        return _Terms(_regex(regex_match["regex"]), 1)
    if pattern.startswith(("[", "{", "%")):
        refuse()
    return _Terms(_terms(pattern))


# ---- terms -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Terms:
    """A pattern of terms; members of messages that are JSON can be named all the same."""

    test: Callable[[str], bool]
    regexes: int = 0

    def matches(self, message: str) -> bool:
        return self.test(message)

    def field(self, message: str, selector: str) -> str | None:
        return text_at(_read(message), selector)

    def fields_of(self, _message: str) -> dict[str, str]:
        return {}


def _regex(text: str) -> Callable[[str], bool]:
    matches = read_regex(text)
    if matches is None:
        refuse()
    return matches


def _terms(pattern: str) -> Callable[[str], bool]:
    """The test of terms: a message has all plain ones, or one of those after `?`, and none of those after `-`."""
    groups: dict[str, list[str]] = {"": [], "?": [], "-": []}
    at = 0
    while at < len(pattern):
        match = _TERM.match(pattern, at)
        if match is None:
            refuse()
        mark, quoted, word = match.groups()
        groups[mark].append(re.sub(r"\\(.)", r"\1", quoted if word is None else word))
        at = match.end()
    required, any_of, excluded = groups[""], groups["?"], groups["-"]

    def matches(message: str) -> bool:
        if any(term in message for term in excluded):
            return False
        if required or not any_of:  # beside plain ones, those after `?` do not count
            return all(term in message for term in required)
        return any(term in message for term in any_of)

    return matches


# ---- JSON -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OnJson:
    test: Test
    selectors: Sequence[str]
    regexes: int

    def matches(self, message: str) -> bool:
        document = _read(message)
        return document is not None and self.test(document)

    def field(self, message: str, selector: str) -> str | None:
        return text_at(_read(message), selector)

    def fields_of(self, message: str) -> dict[str, str]:
        document = _read(message)
        values = {selector: text_at(document, selector) for selector in self.selectors}
        return {selector: text for selector, text in values.items() if text is not None}


def _read(message: str) -> Any:
    """The message as JSON; None if it is not JSON."""
    try:
        return orjson.loads(message)
    except orjson.JSONDecodeError:
        return None


# ---- columns ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OnColumns:
    columns: Columns

    @property
    def regexes(self) -> int:
        return self.columns.regexes

    def matches(self, message: str) -> bool:
        return self.columns.words(message) is not None

    def field(self, message: str, selector: str) -> str | None:
        return (self.columns.words(message) or {}).get(selector)

    def fields_of(self, message: str) -> dict[str, str]:
        return self.columns.words(message) or {}
