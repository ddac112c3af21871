"""A policy's JSON as tokens, each with its place in the text, for refusals that point at what is wrong.

Refusals name a column as the original service's streaming parser would: a string counts as read up to its
opening quote until somebody asks for its text, and a name has already looked at the value behind it. Clients
compare these texts, so the columns follow recorded ones to the character.
"""

import enum
import json
import re
from math import isinf
from typing import Any, Final, NamedTuple, NoReturn

from redrive.model.errors import RedriveError

_SOURCE_SHOWN_MAX: Final = 500  # characters of the policy that a refusal repeats


class FilterPolicyInvalid(RedriveError):  # noqa: N818 - an answer, named as a caller says it
    """The filter policy breaks a rule; as a string, the recorded text, with the place where it has one.

    Attributes:
        reason: The rule alone.
    """

    def __init__(self, reason: str, position: str = "") -> None:
        super().__init__(reason + position)
        self.reason = reason


class Kind(enum.Enum):
    """The kind of a token."""

    OBJECT = "{"
    OBJECT_END = "}"
    ARRAY = "["
    ARRAY_END = "]"
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    LITERAL = "literal"


class Token(NamedTuple):
    """One token."""

    kind: Kind  # Kind of token
    text: str  # A string's text, anything else as it is spelled
    value: Any  # Value of a string, number or literal
    reached: int  # How many characters are read when it is the current token
    end: int  # How many are read once its text was asked for


class Tokens:
    """The tokens of one policy, read one after the other."""

    def __init__(self, document: object, *, stored: bool = False) -> None:
        """Begin before the first token of a policy; `stored`: it was taken earlier, maybe by a laxer release."""
        self.stored = stored
        self.source = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        self._tokens = _tokenize(self.source)
        self._next = 0
        self._read = 0

    @property
    def current(self) -> Token:
        """The token read last."""
        return self._tokens[self._next - 1]

    def advance(self) -> Token:
        """The next token, which becomes the current one."""
        token = self._tokens[self._next]
        self._next += 1
        self._read = token.reached
        return token

    def text(self) -> str:
        """The current token's text; a string is read to its end by this."""
        self._read = self.current.end
        return self.current.text

    def expect(self, kind: Kind, otherwise: str) -> Token:
        """The next token, which must be of this kind; else the policy is refused with the text `otherwise`."""
        token = self.advance()
        if token.kind is not kind:
            self.refuse(otherwise)
        return token

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the policy at the place that is read up to."""
        excerpt = f'"{self.source[:_SOURCE_SHOWN_MAX]}"'
        if len(self.source) > _SOURCE_SHOWN_MAX:
            excerpt += f"[truncated {len(self.source) - _SOURCE_SHOWN_MAX} chars]"
        raise FilterPolicyInvalid(
            reason, f"\n at [Source: (String){excerpt}; line: 1, column: {self._read + 1}]"
        )


def parse(text: str) -> Any:
    """The JSON document, or the refusal of a text that is not one."""
    try:
        return json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise _parse_error(error.msg, error.lineno, error.colno) from error
    except (ValueError, RecursionError) as error:
        raise _parse_error(str(error), 1, 1) from error


def _parse_error(message: str, line: int, column: int) -> FilterPolicyInvalid:
    source = "REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"
    return FilterPolicyInvalid(
        f"failed to parse JSON. {message}", f"\n at [Source: {source}; line: {line}, column: {column}]"
    )


def _finite(text: str) -> float:
    number = float(text)
    return _refuse_number(text) if isinf(number) else number


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text} is out of range")


_LEXEME: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]|[^\s,:"{}\[\]]++')
_PUNCTUATION: Final = {
    kind.value: kind for kind in (Kind.OBJECT, Kind.OBJECT_END, Kind.ARRAY, Kind.ARRAY_END)
}


def _tokenize(source: str) -> list[Token]:
    """The tokens in order; a name reaches as far as the value behind it (see the module)."""
    tokens = [_token(source, match) for match in _LEXEME.finditer(source)]
    for number, token in enumerate(tokens):
        if token.kind is Kind.NAME:
            reached = tokens[number + 1].reached
            tokens[number] = token._replace(reached=reached, end=reached)
    return tokens


def _token(source: str, match: re.Match[str]) -> Token:
    """One token; of a string, only the opening quote counts as read at first."""
    text, end = match[0], match.end()
    if kind := _PUNCTUATION.get(text):
        return Token(kind, text, None, end, end)
    value = json.loads(text)
    if not isinstance(value, str):
        literal = value is None or isinstance(value, bool)
        return Token(Kind.LITERAL if literal else Kind.NUMBER, text, value, end, end)
    is_key = source[end : end + 1] == ":"
    return Token(Kind.NAME if is_key else Kind.STRING, value, value, match.start() + 1, end)
