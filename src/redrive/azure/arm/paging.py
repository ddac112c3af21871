"""Lists in pages: `$filter`, `$top`, and a link to the next page."""

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from redrive.azure.arm.call import ArmCall, whole_number
from redrive.azure.arm.name_filter import name_filter
from redrive.azure.wire.answers import json_answer
from redrive.azure.wire.errors import AzureError, invalid
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
    """One page of a list.

    Args:
        call: Whose query says which.
        fetch: Reads values.
        key: What they are in order of.
        name: What `$filter` is about; None: the value is none of this list's.
        render: How one is rendered.

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
    kept = {name: value for name, value in call.query.items() if name != "$skiptoken"}
    query = kept | {"$skiptoken": base64.urlsafe_b64encode(after.encode()).decode()}
    return f"{call.base_url}{call.request.path}?{urlencode(query)}"
