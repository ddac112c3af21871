"""Patterns of policies: letter by letter, with `*` and `?`, ARNs by segment, with variables filled in.

A list of strings becomes one set and one regular expression when the policy is read. Only a string that has a
variable (`${aws:PrincipalAccount}`) is put together per request. No pattern costs more than its length times the
text's: each `*` takes the first place where what follows it fits and never reconsiders, which is all a wildcard
needs, so nobody can write a policy that keeps the server searching.
"""

import enum
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from redrive.model.errors import RedriveError


class PolicyInvalid(RedriveError):  # noqa: N818 - this is an answer, named as a caller says it
    """A policy document cannot be read; nothing of it may be obeyed.

    Attributes:
        reason: What is wrong, and where in the document.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Values = str | tuple[str, ...]
# From a condition key's name in lower case to what the request has there.
Lookup = Callable[[str], Values | None]

_ARN_COLONS: Final = 5  # arn:partition:service:region:account:resource
_VARIABLE: Final = r"\$\{(?P<variable>[^{}]*)\}"
_WILDCARD: Final = r"[*?]"
_VARIABLE_NAME: Final = re.compile(r"\s*([^\s,'*?$]+)\s*(?:,\s*'([^']*)'\s*)?")


class WildcardReach(enum.Enum):
    """The characters that the wildcards of a pattern may run across."""

    TEXT = enum.auto()
    ARN = enum.auto()  # a wildcard stays within one of the first five segments, or within the resource


class _Wild(enum.Enum):
    ANY = "*"
    ONE = "?"


@dataclass(frozen=True, slots=True)
class _Variable:
    """A condition key to be filled in, and what stands for it where the request has none."""

    key: str
    default: str | None


_Token = str | _Wild | _Variable


@dataclass(frozen=True, slots=True)
class _Template:
    """A pattern with variables, which are filled in literally: a `*` in a value is not a wildcard."""

    tokens: tuple[_Token, ...]
    shape: WildcardReach
    folded: bool

    def match(self, text: str, lookup: Lookup) -> bool:
        """True if the pattern matches a text with the request's values in place of the variables."""
        pieces = self._fill_in(lookup)
        if pieces is None:
            return False
        texts = [piece for piece in pieces if isinstance(piece, str)]
        if len(texts) == len(pieces):
            return "".join(texts) == text
        return re.fullmatch(_expression(pieces, self.shape), text) is not None

    def _fill_in(self, lookup: Lookup) -> list[str | _Wild] | None:
        """The tokens with the request's values in them; None if it lacks one."""
        pieces: list[str | _Wild] = []
        for token in self.tokens:
            if isinstance(token, _Variable):
                value = lookup(token.key)
                # A key of several values is not a variable: which of them would be meant?
                piece = value if isinstance(value, str) else token.default
                if piece is None:
                    return None
                pieces.append(piece.lower() if self.folded else piece)
            else:
                pieces.append(token)
        return pieces


@dataclass(frozen=True, slots=True)
class Patterns:
    """Any of several patterns."""

    everything: bool  # One of them is `*`
    exact: frozenset[str]  # Those without wildcards
    wild: re.Pattern[str] | None  # Those with, as one expression
    templates: tuple[_Template, ...]  # Those that need the request's own values
    folded: bool  # Upper and lower case are the same
    # What stands before the first wildcard or variable of each pattern that has one.
    heads: tuple[str, ...] = ()
    covering: tuple[str, ...] = ()  # The heads of those that match whatever begins so

    def match(self, text: str, lookup: Lookup) -> bool:
        """True if one of them matches the whole text."""
        if self.everything:
            return True
        if self.folded:
            text = text.lower()
        if text in self.exact or (self.wild is not None and self.wild.fullmatch(text) is not None):
            return True
        return bool(self.templates) and any(template.match(text, lookup) for template in self.templates)

    def may_match_below(self, beginning: str) -> bool:
        """True if some text that begins so may match; that of a pattern with a variable is not worked out."""
        if self.everything or any(text.startswith(beginning) for text in self.exact):
            return True
        return any(head.startswith(beginning) or beginning.startswith(head) for head in self.heads)

    def cover(self, beginning: str) -> bool:
        """True if every text that begins so matches."""
        return self.everything or any(beginning.startswith(head) for head in self.covering)


def compile_patterns(
    values: Sequence[str],
    *,
    shape: WildcardReach = WildcardReach.TEXT,
    wildcards: bool = True,
    variables: bool = False,
    folded: bool = False,
) -> Patterns:
    """Prepare patterns for matching.

    Args:
        values: As they stand in the policy.
        shape: What a wildcard may run across.
        wildcards: Whether `*` and `?` mean anything.
        variables: Whether `${…}` does; only policies of version 2012-10-17 have variables.
        folded: Whether case is ignored.

    Raises:
        PolicyInvalid: A variable has no name.
    """
    exact: set[str] = set()
    wild: list[str] = []
    templates: list[_Template] = []
    heads: list[str] = []
    covering: list[str] = []
    everything = False
    for value in values:
        tokens = _tokens(value.lower() if folded else value, wildcards=wildcards, variables=variables)
        constants = [token for token in tokens if not isinstance(token, _Variable)]
        leading_texts = list(takewhile(lambda token: isinstance(token, str), tokens))
        if len(leading_texts) < len(tokens):
            head = "".join(map(str, leading_texts))
            heads.append(head)
            if tokens[len(leading_texts) :] == (_Wild.ANY,):
                covering.append(head)
        if len(constants) < len(tokens):
            templates.append(_Template(tokens, shape, folded))
        elif _Wild.ANY in constants or _Wild.ONE in constants:
            everything = everything or set(constants) == {_Wild.ANY}
            wild.append(_expression(constants, shape))
        else:
            exact.add("".join(token for token in constants if isinstance(token, str)))
    return Patterns(
        everything=everything,
        exact=frozenset(exact),
        wild=re.compile("|".join(wild)) if wild else None,
        templates=tuple(templates),
        folded=folded,
        heads=tuple(heads),
        covering=tuple(covering),
    )


def variable_keys(text: str) -> frozenset[str]:
    """The keys of the variables in a text, in lower case; raises PolicyInvalid if a variable has no name."""
    tokens = _tokens(text, wildcards=False, variables=True)
    return frozenset(token.key for token in tokens if isinstance(token, _Variable))


def _tokens(pattern: str, *, wildcards: bool, variables: bool) -> tuple[_Token, ...]:
    """A pattern as texts, wildcards and variables; those that are not read stay text."""
    expressions = [each for each, is_read in ((_VARIABLE, variables), (_WILDCARD, wildcards)) if is_read]
    if not expressions:
        return (pattern,)
    tokens: list[_Token] = []
    end = 0
    for mark in re.finditer("|".join(expressions), pattern):
        tokens.append(pattern[end : mark.start()])
        tokens.append(_variable(mark["variable"]) if len(mark[0]) > 1 else _Wild(mark[0]))
        end = mark.end()
    tokens.append(pattern[end:])
    return tuple(token for token in tokens if token != "")


def _variable(text: str) -> str | _Variable:
    """The variable of this name, or the character that it stands for."""
    if text in {"*", "?", "$"}:  # `${*}` is how a policy writes a star that is not a wildcard
        return text
    match = _VARIABLE_NAME.fullmatch(text)
    if match is None:
        raise PolicyInvalid(f"'${{{text}}}' is not a policy variable")
    return _Variable(match[1].lower(), match[2])


def _expression(tokens: Iterable[str | _Wild], shape: WildcardReach) -> str:
    """The regular expression of a pattern; `(?s:…)` so that it may be joined to others as it is.

    A star takes the first text that fits behind it for good (`(?>…)`), or many stars would be tried in all combinations.
    """
    parts = list(tokens)
    if shape is WildcardReach.ARN:
        parts += _rest_of_arn(parts)
    colons = 0
    groups: list[str] = []
    star = ""  # the wildcard that waits to see what follows it
    chunk = ""
    for part in parts:
        in_segment = shape is WildcardReach.ARN and colons < _ARN_COLONS
        if part is _Wild.ANY:
            groups.append(f"(?>{star}?{chunk})" if star else chunk)
            star, chunk = ("[^:]*" if in_segment else ".*"), ""
        elif part is _Wild.ONE:
            chunk += "[^:]" if in_segment else "."
        else:
            chunk += re.escape(str(part))
            colons += str(part).count(":")
    return f"(?s:{''.join(groups)}{star}{chunk})"


def _rest_of_arn(parts: Sequence[str | _Wild]) -> list[str | _Wild]:
    """The segments that `arn:aws:sqs:*` leaves out: any region, account and resource."""
    colons = sum(part.count(":") for part in parts if isinstance(part, str))
    return [":", _Wild.ANY] * (_ARN_COLONS - colons)
