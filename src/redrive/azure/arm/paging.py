"""Lists in pages: `$filter`, `$top`, and a link to the next page."""

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from redrive.azure.arm.call import ArmCall
from redrive.azure.wire.answers import AzureError, invalid, json_answer
from redrive.azure.wire.routes import whole_number
from redrive.model.http import Response

T = TypeVar("T")
# Values behind a key, so many at most, in the keys' order.
Fetch = Callable[[str, int], Awaitable[Sequence[T]]]

TOP_DEFAULT: Final = 20
TOP_MAX: Final = 100
_READ_AT_ONCE: Final = 200


async def page(
    call: ArmCall,
    fetch: Fetch[T],
    key: Callable[[T], str],
    name: Callable[[T], str | None],
    render: Callable[[T], Mapping[str, Any]],
) -> Response:
    """One page of a list, as the call's query asks.

    Values come in the order of their `key`. `$filter` is about their `name`; None: the value is none of this list's.

    Raises:
        AzureError: `$filter`, `$top` or `$skipToken` is not one.
    """
    condition, top = name_filter(call.query.get("$filter", "")), _top(call)
    after, matching = _token(call), list[T]()
    while len(matching) <= top:
        values = await fetch(after, _READ_AT_ONCE)
        matching += [value for value in values if (called := name(value)) is not None and condition(called)]
        if len(values) < _READ_AT_ONCE:
            break
        after = key(values[-1])
    listed: dict[str, Any] = {"value": [render(value) for value in matching[:top]]}
    if len(matching) > top:
        listed["nextLink"] = _next_link(call, key(matching[top - 1]))
    return json_answer(listed)


def _top(call: ArmCall) -> int:
    text = call.query.get("$top", str(TOP_DEFAULT))
    top = whole_number(text, 1, TOP_MAX)
    if top is None:
        raise invalid(f"The $top '{text}' is not a number from 1 to {TOP_MAX}.")
    return top


def _token(call: ArmCall) -> str:
    try:
        after = base64.urlsafe_b64decode(call.query.get("$skiptoken", "")).decode()
    except (binascii.Error, ValueError):
        raise _no_token() from None
    if not after.isprintable():  # no key is: not every store can look for one with a NUL in it
        raise _no_token()
    return after


def _no_token() -> AzureError:
    return invalid("The $skipToken is none that this server gave.")


def _next_link(call: ArmCall, after: str) -> str:
    parameters = {name: value for name, value in call.query.items() if name != "$skiptoken"}
    query = parameters | {"$skiptoken": base64.urlsafe_b64encode(after.encode()).decode()}
    return f"{call.base_url}{call.request.path}?{urlencode(query)}"


# `$filter` of lists: OData on the name alone.
#
#     name eq 'a'     name ne 'a'     contains(name, 'a')     not (…)     … and …     … or …
#
# https://learn.microsoft.com/rest/api/eventgrid has it with each list operation; quotes are doubled within quotes.

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
    reader = _NameFilterReader(text)
    condition = reader.alternatives(0)
    if reader.here:
        raise reader.refused()
    return condition


class _NameFilterReader:
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
