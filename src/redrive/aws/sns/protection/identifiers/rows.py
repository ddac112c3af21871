"""One row for each data identifier that Amazon manages: what it looks like, what must be near it, what is checked.

Names, keywords and countries are those of "Sensitive data types" in the SNS developer guide. What a number looks like
the guide does not say; it is what its issuer says, or else the entity definitions of Microsoft Purview.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from redrive.aws.kit.regexes import compiled
from redrive.model.protection import Check, Detector, Finder, Keywords, keyword_expression

#: Around what stands alone: no letter or digit on either side, nor the rest of a decimal number.
BEFORE: Final = "(?:^|[^A-Za-z0-9.]|(?:^|[^0-9])[.])"
AFTER: Final = "(?:[^A-Za-z0-9.]|[.](?:[^0-9]|$)|$)"


@dataclass(frozen=True, slots=True)
class IdentifierRow:
    """One identifier."""

    pattern: str  # RE2 syntax: without lookahead and lookbehind
    keywords: str = ""  # Separated by commas; empty: none has to be near
    check: Check | None = None  # Additional check of a match
    before: str = BEFORE  # Required text before the match, not part of it
    after: str = AFTER  # The same behind it
    any_case: bool = True  # Capitals do not matter

    def finder(self) -> Finder:
        """The finder of the identifier."""
        words = [word.strip() for word in self.keywords.split(",")] if self.keywords else []
        return Detector(
            compiled(f"{self.before}({self.pattern}){self.after}", case_sensitive=not self.any_case),
            self.check,
            Keywords(compiled(keyword_expression(words))) if words else None,
        )


Rows = Mapping[str, IdentifierRow]


class NumberModule(Protocol):
    """One of stdnum's modules, each of which knows one kind of number."""

    @property
    def is_valid(self) -> Callable[[str], bool]:
        """True if it is one."""
        ...


def valid(module: NumberModule) -> Check:
    """A check by a module of stdnum, of letters and digits only: separators are the pattern's concern."""

    def check(text: str) -> bool:
        return module.is_valid("".join(each for each in text if each.isalnum()))

    return check
