"""Routes: which verb a method and a path stand for; and queries.

A pattern is a path with names in braces. `{topic}` takes one part of the path, `{scope...}` any number of them; what
they take is handed on as it was spelt, percent-decoded. The words between are compared without regard to case:
`az group create` sends `/resourcegroups/` where everybody else sends `/resourceGroups/`. A slash that is
percent-encoded parts a path too: azure-mgmt-eventgrid sends some scopes whole.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from urllib.parse import parse_qsl, unquote

from redrive.azure.wire.answers import invalid
from redrive.model.http import Request

T = TypeVar("T")

_PARAMETERS_MAX: Final = 100  # of a query
_DIGITS_MAX: Final = 20  # of a number; Python reads no more than 4,300
_NAME: Final = re.compile(r"\\\{(\w+)(\\\.\\\.\\\.)?\\\}")  # as re.escape leaves it
#: Resource ids have some hundred characters; to compare 16 KiB with each pattern takes 2 ms, for anybody who sends them.
PATH_CHARS_MAX: Final = 4096
_SLASHES: Final = re.compile("(?:/|%2f)+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RouteMatch(Generic[T]):
    """A route that matches."""

    verb: T | None  # Handler of the method; None: the path is known, but not with this method
    params: Mapping[str, str]  # Parameters from the path
    methods: tuple[str, ...]  # All that the path knows


class RouteTable(Generic[T]):
    """Routes in the order they were added: the first pattern that takes a path has it to itself."""

    def __init__(self, routes: Mapping[str, T] | None = None) -> None:
        self._verbs: dict[str, dict[str, T]] = {}  # by pattern and method
        self._patterns: list[tuple[re.Pattern[str], dict[str, T]]] | None = None
        self.add_all(routes or {})  # By method and pattern: `GET /subscriptions/{subscription}`

    @property
    def names(self) -> list[str]:
        """Method and pattern of every route."""
        return [f"{method} {pattern}" for pattern, verbs in self._verbs.items() for method in verbs]

    def add_all(self, routes: Mapping[str, T]) -> None:
        """Add routes behind those that are there."""
        for name, verb in routes.items():
            method, _, pattern = name.partition(" ")
            self._verbs.setdefault(pattern, {})[method] = verb
        self._patterns = None

    def find(self, method: str, path: str) -> RouteMatch[T] | None:
        """The route of a method in upper case and a path without the query; None: no route has this path."""
        if len(path) > PATH_CHARS_MAX:
            return None
        tidy = _SLASHES.sub("/", path)
        if self._patterns is None:  # by the first request: a server that has none starts 0.1 s sooner
            self._patterns = [(_compile(pattern), verbs) for pattern, verbs in self._verbs.items()]
        for pattern, verbs in self._patterns:
            match = pattern.fullmatch(tidy)
            if match is not None:
                params = {name: unquote(value) for name, value in match.groupdict().items()}
                return RouteMatch(verbs.get(method), params, tuple(verbs))
        return None


def _compile(pattern: str) -> re.Pattern[str]:
    def group(match: re.Match[str]) -> str:
        return f"(?P<{match[1]}>{'.+' if match[2] else '[^/:]+'})"

    return re.compile(_NAME.sub(group, re.escape(pattern)) + "/?", re.IGNORECASE)


def query_of(request: Request) -> Mapping[str, str]:
    """The query by names in lower case; of a repeated one the last counts.

    Raises:
        AzureError: It is longer than anybody's.
    """
    try:
        pairs = parse_qsl(request.query, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
    except ValueError:
        raise invalid(f"The query has more than {_PARAMETERS_MAX} parameters.") from None
    return {name.lower(): value for name, value in pairs}


def whole_number(text: str, least: int, most: int) -> int | None:
    """A whole number in digits, as queries have them; None: not a whole number, or outside the range."""
    if not text.isdecimal() or len(text) > _DIGITS_MAX:
        return None
    number = int(text)
    return number if least <= number <= most else None
