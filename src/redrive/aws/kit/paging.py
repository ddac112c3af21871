"""Pages of lists, once for every service: the names of their members come from botocore's published paginators.

A token is the place of the last item on its page with a digest of it and of its operation, so one that was damaged, or
that another list or another service gave out, is refused. It is not a secret: whoever may list may begin anywhere.
"""

import re
from base64 import b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2s
from typing import Any, TypeVar

from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import published
from redrive.aws.wire.shapes import Structure

T = TypeVar("T")
_DIGEST_BYTES = 6
_COUNT = re.compile(r"[0-9]{1,9}")  # tokens can be forged, and Python refuses numbers of 5,000 digits


@dataclass(frozen=True, slots=True)
class Pages:
    """The lists of one service."""

    service: str  # Botocore's name of it
    refusal: Callable[[str], AwsError]  # Makes the service's error of a token that it did not give out
    size: int = 100  # How many items a page has, where the caller does not say
    # How many it has at most; more are cut off, or refused. None: the published model bounds them.
    size_max: int | None = None
    # Makes the service's error of a size out of bounds; None: it is cut down.
    size_refusal: Callable[[int], AwsError] | None = None

    def of(
        self,
        operation: str,
        params: Structure,
        items: Sequence[T],
        show: Callable[[T], object],
        key: Callable[[T], str] | None = None,
    ) -> Structure:
        """The answer with the page that is asked for.

        Args:
            operation: The vendor's name of it.
            params: Its parameters.
            items: All of them, in the order of their keys.
            show: Makes what the answer shows of an item.
            key: Of an item, unique; None: the token counts those that were listed.

        Raises:
            AwsError: The token is not one of this list.
        """
        page, answer = self.cut(operation, params, items, key)
        return {_members(self.service, operation)["result_key"]: [show(item) for item in page], **answer}

    def cut(
        self,
        operation: str,
        params: Structure,
        items: Sequence[T],
        key: Callable[[T], str] | None = None,
        *,
        size: int | None = None,
        descending: bool = False,
    ) -> tuple[Sequence[T], Structure]:
        """The items of the page that is asked for, and the members of the answer that lead to the next; see `of`.

        `items` may leave out what is before the token. `size` is the page's size where the caller does not say;
        `descending` has the greatest key first.

        Raises:
            AwsError: The token is not one of this list.
        """
        after = "" if key is None else self.after(operation, params)
        if key is None:
            begin = self.count_before(operation, params)
        elif descending:
            remaining = bisect_left(
                items[::-1], after, key=key
            )  # those with smaller keys, which are the last
            begin = len(items) - remaining if after else 0
        else:
            begin = bisect_right(items, after, key=key)
        end = begin + self.limit(operation, params, size)
        page = items[begin:end]
        if len(items) <= end:
            return page, self.ending(operation)
        return page, self.ending(operation, str(end) if key is None else key(page[-1]))

    def after(self, operation: str, params: Structure) -> str:
        """The key that a page begins behind; empty for the first.

        Raises:
            AwsError: The token is not one of this list.
        """
        token: str = params.get(_members(self.service, operation)["input_token"]) or ""
        if not token:
            return ""
        try:
            content = b64decode(token, b"-_", validate=True)
            key = content[_DIGEST_BYTES:].decode()
        except ValueError:
            raise self.refusal(token) from None
        # PostgreSQL's texts cannot have a NUL.
        if content[:_DIGEST_BYTES] != _digest(operation, key) or "\0" in key:
            raise self.refusal(token)
        return key

    def count_before(self, operation: str, params: Structure) -> int:
        """The number of items before a page, of a list whose tokens count them.

        Raises:
            AwsError: The token is not one of this list.
        """
        after = self.after(operation, params)
        if after and not _COUNT.fullmatch(after):
            raise self.refusal(params[_members(self.service, operation)["input_token"]])
        return int(after or 0)

    def limit(self, operation: str, params: Structure, size: int | None = None) -> int:
        """The largest number of items on a page; `size`, or as many as is usual, where the caller does not say.

        Raises:
            AwsError: The caller asks for too few or too many.
        """
        limit = params.get(_members(self.service, operation).get("limit_key", ""))
        if isinstance(limit, str):  # as HTTP APIs have it
            limit = int(limit) if _COUNT.fullmatch(limit) else 0
        maximum = self.size_max
        if self.size_refusal and limit is not None and not 1 <= limit <= (maximum or limit):
            raise self.size_refusal(limit)
        number: int = limit or size or self.size
        return number if maximum is None else min(number, maximum)

    def ending(self, operation: str, last: str = "") -> Structure:
        """The members of an answer that say whether there is more: behind the key of the last item, if any."""
        members = _members(self.service, operation)
        answer: Structure = {members["more_results"]: bool(last)} if "more_results" in members else {}
        if last:
            token = urlsafe_b64encode(_digest(operation, last) + last.encode())
            answer[members["output_token"]] = token.decode()
        return answer


def _digest(operation: str, key: str) -> bytes:
    return blake2s(f"{operation}\n{key}".encode(), digest_size=_DIGEST_BYTES).digest()


@cache
def _paginators(service: str) -> Mapping[str, Mapping[str, Any]]:
    pagination: Mapping[str, Mapping[str, Any]] = published(service, "paginators-1")["pagination"]
    return pagination


def _members(service: str, operation: str) -> Mapping[str, Any]:
    """The names of the token, limit and result members of a list."""
    return _paginators(service)[operation]
