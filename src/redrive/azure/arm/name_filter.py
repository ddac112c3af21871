"""`$filter` of lists: OData on the name alone.

    name eq 'a'     name ne 'a'     contains(name, 'a')     not (…)     … and …     … or …

https://learn.microsoft.com/rest/api/eventgrid has it with each list operation; quotes are doubled within quotes.
"""

import re
from collections.abc import Callable
from typing import Final

from redrive.azure.wire.errors import AzureError, invalid

Wanted = Callable[[str], bool]

_TOKEN: Final = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<word>[A-Za-z]+)|(?P<sign>[(),]))")
_DEPTH_MAX: Final = 20


def name_filter(text: str) -> Wanted:
    """The predicate of a filter on names, which are compared without regard to case.

    Raises:
        AzureError: Not a valid filter.
    """
    if not text.strip():
        return lambda _: True
    reader = _Reader(text)
    condition = reader.alternatives(0)
    if reader.here:
        raise reader.refused()
    return condition


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.here = ""
        self._next()

    def refused(self) -> AzureError:
        return invalid(
            f"The $filter '{self._text}' is not supported: it takes eq, ne, contains, not, and, or on the name."
        )

    def alternatives(self, depth: int) -> Wanted:
        some = [self._conditions(depth)]
        while self.here == "or":
            self._next()
            some.append(self._conditions(depth))
        return lambda name: any(alternative(name) for alternative in some)

    def _conditions(self, depth: int) -> Wanted:
        every = [self._condition(depth)]
        while self.here == "and":
            self._next()
            every.append(self._condition(depth))
        return lambda name: all(condition(name) for condition in every)

    def _condition(self, depth: int) -> Wanted:
        if depth > _DEPTH_MAX:
            raise self.refused()
        if self.here == "not":
            self._next()
            unwanted = self._condition(depth + 1)
            return lambda name: not unwanted(name)
        if self.here == "(":
            self._next()
            condition = self.alternatives(depth + 1)
            self._take(")")
            return condition
        if self.here == "contains":
            return self._contains()
        return self._comparison()

    def _contains(self) -> Wanted:
        self._next()
        for token in ("(", "name", ","):
            self._take(token)
        part = self._literal()
        self._take(")")
        return lambda name: part in name.lower()

    def _comparison(self) -> Wanted:
        self._take("name")
        operator = self.here
        if operator not in ("eq", "ne"):
            raise self.refused()
        self._next()
        other = self._literal()
        return lambda name: (name.lower() == other) is (operator == "eq")

    def _literal(self) -> str:
        if not self.here.startswith("'"):
            raise self.refused()
        value = self.here[1:-1].replace("''", "'").lower()
        self._next()
        return value

    def _take(self, token: str) -> None:
        if self.here != token:
            raise self.refused()
        self._next()

    def _next(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            if self._text[self._at :].strip():
                raise self.refused()
            self.here = ""
            return
        self._at = match.end()
        self.here = match["text"] or (match["word"] or match["sign"]).lower()
