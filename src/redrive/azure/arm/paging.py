"""Lists in pages: `$filter`, `$top`, and a link to the next page."""

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from typing_extensions import override

from redrive.azure.arm.call import ArmCall
from redrive.azure.wire.answers import AzureError, invalid, json_answer
from redrive.azure.wire.routes import whole_number
from redrive.model.http import Response
from redrive.model.language import LanguageReader

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

    Values come in the order of their `key`. `$filter` is about their `name`; values without one are left out.

    Raises:
        AzureError: `$filter`, `$top` or `$skipToken` is not one.
    """
    condition, top = name_filter(call.query.get("$filter", "")), _top(call)
    after, matching = _token(call), list[T]()
    while len(matching) <= top:
        values = await fetch(after, _READ_AT_ONCE)
        pairs = [(value, name(value)) for value in values]
        matching += [value for value, text in pairs if text is not None and condition(text)]
        if len(values) < _READ_AT_ONCE:
            break
        after = key(values[-1])
    page: dict[str, Any] = {"value": [render(value) for value in matching[:top]]}
    if len(matching) > top:
        page["nextLink"] = _next_link(call, key(matching[top - 1]))
    return json_answer(page)


def _top(call: ArmCall) -> int:
    """The number of entries that a page may have; raises AzureError."""
    text = call.query.get("$top", str(TOP_DEFAULT))
    top = whole_number(text, 1, TOP_MAX)
    if top is None:
        raise invalid(f"The $top '{text}' is not a number from 1 to {TOP_MAX}.")
    return top


def _token(call: ArmCall) -> str:
    """The key that a page begins behind; empty for the first page. Raises AzureError."""
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

Predicate = Callable[[str], bool]

_TOKEN: Final = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<word>[A-Za-z]+)|(?P<sign>[(),]))")


def name_filter(text: str) -> Predicate:
    """The predicate of a filter on names, which are compared without regard to case.

    Raises:
        AzureError: Not a valid filter.
    """
    if not text.strip():
        return lambda _: True
    try:
        reader = _NameFilterReader(_NameFilterReader.tokens(text, _TOKEN, any_case=True))
        condition = reader.alternatives()
        reader.finish()
    except ValueError:
        raise invalid(
            f"The $filter '{text}' is not supported: it takes eq, ne, contains, not, and, or on the name."
        ) from None
    return condition


class _NameFilterReader(LanguageReader):
    depth_max = 20

    @classmethod
    @override
    def refusal(cls, reason: str) -> ValueError:
        return ValueError(reason)

    def alternatives(self) -> Predicate:
        some = self.several(self._conditions, "or")
        return lambda name: any(alternative(name) for alternative in some)

    def _conditions(self) -> Predicate:
        every = self.several(self._condition, "and")
        return lambda name: all(condition(name) for condition in every)

    def _condition(self) -> Predicate:
        """One condition on a name: negated by `not`, in brackets, or a comparison."""
        with self.nested():
            if self.take("not"):
                opposite = self._condition()
                return lambda name: not opposite(name)
            if self.take("("):
                condition = self.alternatives()
                self.need(")")
                return condition
        return self._contains() if self.take("contains") else self._comparison()

    def _contains(self) -> Predicate:
        """`contains(name, 'TEXT')`, whose beginning was read."""
        for sign in ("(", "name", ","):
            self.need(sign)
        substring = self._literal()
        self.need(")")
        return lambda name: substring in name.lower()

    def _comparison(self) -> Predicate:
        self.need("name")
        operator = self.need("eq", "ne")
        other = self._literal()
        return lambda name: (name.lower() == other) is (operator == "eq")

    def _literal(self) -> str:
        return self.expect("text").text[1:-1].replace("''", "'").lower()
