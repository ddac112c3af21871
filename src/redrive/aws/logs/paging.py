"""Pages of groups and streams: a token says what the last one shown is sorted by."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import orjson

from redrive.aws.logs.errors import invalid_token
from redrive.aws.wire.shapes import Structure

T = TypeVar("T")
SortKey = tuple[int, str]  # a moment (ms), or 0 where there is none, and a name


@dataclass(frozen=True, slots=True)
class LogPage:
    """The size of a page, and its beginning.

    Attributes:
        limit: At most so many.
        after: Only those behind this one; None: from the first on.
        descending: Last first.
    """

    limit: int
    after: SortKey | None
    descending: bool = False

    @classmethod
    def of(cls, params: Structure, limit_max: int) -> "LogPage":
        """The page that a request asks for.

        Raises:
            AwsError: Its token is none.
        """
        limit = params.get("limit") or limit_max
        return cls(limit, _position(params.get("nextToken")), bool(params.get("descending")))

    def cut(self, everything: Sequence[T], key: Callable[[T], SortKey]) -> tuple[list[T], Structure]:
        """The elements to show, in order, and the beginning of the answer: the next token where there is more."""
        ordered = sorted(
            (element for element in everything if self._is_behind(key(element))),
            key=key,
            reverse=self.descending,
        )
        page = ordered[: self.limit]
        if len(page) == len(ordered):
            return page, {}
        return page, {"nextToken": urlsafe_b64encode(orjson.dumps(key(page[-1]))).decode()}

    def _is_behind(self, position: SortKey) -> bool:
        if self.after is None:
            return True
        return position < self.after if self.descending else position > self.after


def _position(token: str | None) -> SortKey | None:
    if not token:
        return None
    try:
        moment, name = orjson.loads(urlsafe_b64decode(token))
    except (ValueError, TypeError):
        raise invalid_token() from None
    if type(moment) is not int or type(name) is not str:
        raise invalid_token()
    return moment, name
