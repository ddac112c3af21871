"""Custom identifiers: regular expressions that come from callers, who may mean ill.

RE2 has no backtracking: one look through a text takes time in proportion to its length and to the expression's size.
Looking for all finds may go through the same text again for each of them, so that is given a budget. Where it is used
up, the rest of the text counts as one find: it is masked or denied, never passed unseen.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import re2

from redrive.aws.kit.regexes import compiled
from redrive.model.protection import Span

#: Bytes times instructions. RE2 takes 5 ns for each where an expression has more states than it keeps, as
#: `[ab]*a[ab]{300}c|b` has, so this is 5 s. It is 340 finds of `ORDER-[0-9]+` in the largest message, where each is
#: counted as if it had been looked for up to the end, and 1,400 in one of 64 KiB.
_BUDGET: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class CustomFinder:
    """Finds what a compiled expression of RE2's matches."""

    pattern: Any  # The expression
    lookahead: int | None  # How many bytes after a find it may have read; None: up to the end

    def find(self, text: bytes) -> list[Span]:
        """The matches, in order. Each costs the bytes read for it; where the budget ends, the rest is one match."""
        finds: list[Span] = []
        remaining, position = _BUDGET, 0
        for match in self.pattern.finditer(text):
            start, end = match.span()
            read_to = len(text) if self.lookahead is None else end + self.lookahead
            remaining -= (read_to - position) * self.pattern.programsize
            if remaining < 0:
                finds.append((start, len(text)))  # not read, and so not let pass
                break
            if end > start:
                finds.append((start, end))
            position = end
        return finds


NAME_CHARS_MAX: Final = 128
REGEX_CHARS_MAX: Final = 200

#: Instructions of the compiled expression; `[A-Z]{200}` has 200.
SIZE_MAX: Final = 400
#: A third of it may be states: 0.9 GiB, were all ten in each of the 256 policies that are remembered hostile. RE2's own
#: 8 MiB would be 7 GiB, and make nothing faster that anybody means.
_MEMORY_BYTES: Final = 1 << 20
_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_CHARS_MAX}}}")
_REGEX: Final = re.compile(rf"[A-Za-z0-9_#=@/;,\- ^$?\[\]{{}}|\\*+.]{{1,{REGEX_CHARS_MAX}}}")

#: Repetitions without a bound.
_ENDLESS: Final = re.compile(r"[*+]|,\}")


class CustomRefused(ValueError):  # noqa: N818 - an answer, named as a caller says it
    """No identifier can be made of it; says why."""


def custom_finder(name: str, regex: str) -> CustomFinder:
    """The finder of a custom identifier ("Custom data identifier constraints").

    Raises:
        CustomRefused: The name or the expression is not acceptable.
    """
    if not _NAME.fullmatch(name):
        raise CustomRefused(f"Name must be 1 to {NAME_CHARS_MAX} letters, digits, hyphens and underscores")
    if not _REGEX.fullmatch(regex):
        raise CustomRefused(f"Regex of {name} must be 1 to {REGEX_CHARS_MAX} of the supported characters")
    try:
        pattern = compiled(regex, memory_bytes=_MEMORY_BYTES)
    except re2.error:
        raise CustomRefused(f"Regex of {name} is not a regular expression") from None
    if pattern.programsize > SIZE_MAX:
        raise CustomRefused(f"Regex of {name} is too complicated")
    if pattern.search("") is not None:
        raise CustomRefused(f"Regex of {name} must not match an empty text")
    # Without such a repetition RE2 reads at most a byte for each instruction; with one, perhaps the rest of the text.
    lookahead = None if _ENDLESS.search(regex) else pattern.programsize
    return CustomFinder(pattern, lookahead)
