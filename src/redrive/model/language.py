"""Reading of small languages: a text as tokens, and reading by descent within a depth that is bounded.

A language is a pattern of its tokens, whose named groups are their kinds, and a reader that adds operands and operators.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final, NamedTuple, TypeVar

T = TypeVar("T")
_SIGNS: Final = frozenset({"word", "sign"})
_CHARS_TOLD: Final = 30  # of a text that has no token


class LanguageToken(NamedTuple):
    """A token of a text, from one of its characters to before another."""

    kind: str  # The group of the pattern that matched; `end` behind the last token
    text: str
    sign: str  # What operators and keywords are recognised by; empty for literals
    begin: int
    end: int


def token_of(match: re.Match[str], *, any_case: bool = False) -> LanguageToken:
    """The token that a pattern matched; with `any_case`, capitals make no difference to signs."""
    kind = match.lastgroup or ""
    text = match[kind]
    sign = text if kind in _SIGNS else ""
    return LanguageToken(kind, text, sign.lower() if any_case else sign, match.start(kind), match.end(kind))


class LanguageReader:
    """Reads one text by descent.

    A derived class sets `depth_max`, how many times `nested` may be entered within itself, and overrides `refusal`.
    """

    depth_max: ClassVar[int]
    end: ClassVar[str] = "the end"  # What refusals call it

    def __init__(self, tokens: Sequence[LanguageToken]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @classmethod
    def refusal(cls, reason: str) -> Exception:
        """The error that refuses a text for a reason."""
        raise NotImplementedError

    @classmethod
    def tokens(cls, text: str, pattern: re.Pattern[str], *, any_case: bool = False) -> list[LanguageToken]:
        """All tokens of a text; raises what `refusal` makes where no token begins."""
        tokens, at, end = list[LanguageToken](), 0, len(text.rstrip())
        while at < end:
            match = pattern.match(text, at)
            if match is None:
                raise cls.refusal(f"unexpected {text[at:end].strip()[:_CHARS_TOLD]}")
            tokens.append(token_of(match, any_case=any_case))
            at = match.end()
        return tokens

    @property
    def next(self) -> LanguageToken:
        """The next token."""
        return (
            self._tokens[self._at]
            if self._at < len(self._tokens)
            else LanguageToken("end", self.end, "", 0, 0)
        )

    def advance(self) -> LanguageToken:
        """The next token, which is passed over."""
        token = self.next
        self._at += 1
        return token

    def take(self, *signs: str) -> str:
        """Pass over the next token if it is one of these signs, and return that; empty if it is not."""
        sign = self.next.sign
        if sign not in signs:
            return ""
        self._at += 1
        return sign

    def need(self, *signs: str) -> str:
        """Pass over one of these signs, which has to be there, and return it."""
        if sign := self.take(*signs):
            return sign
        raise self.refusal(f"{' or '.join(signs)} expected, not {self.next.text}")

    def expect(self, *kinds: str) -> LanguageToken:
        """Pass over the next token, which has to be of one of these kinds."""
        if self.next.kind not in kinds:
            raise self.unexpected()
        return self.advance()

    def finish(self) -> None:
        """Make sure that nothing is left."""
        self.expect("end")

    def unexpected(self) -> Exception:
        """The error that refuses the next token."""
        return self.refusal(f"unexpected {self.next.text}")

    def several(self, read: Callable[[], T], separator: str) -> list[T]:
        """One or more of what `read` reads, with a separator between them."""
        terms = [read()]
        while self.take(separator):
            terms.append(read())
        return terms

    def until(self, end: str, read: Callable[[], T]) -> list[T]:
        """None or more of what `read` reads, with commas between them, and the sign behind the last."""
        terms = [] if self.next.sign == end else self.several(read, ",")
        self.need(end)
        return terms

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Count a level of what stands within another; raises what `refusal` gives beyond `depth_max`."""
        self._depth += 1
        if self._depth > self.depth_max:
            raise self.refusal(f"more than {self.depth_max} levels")
        yield
        self._depth -= 1
