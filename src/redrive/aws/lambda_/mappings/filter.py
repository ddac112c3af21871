"""Filters of mappings: which messages a function gets; patterns look at a message as its record has it."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from redrive.model.filtering import FilterPolicyInvalid, FilterVerdict, Scope, Subject, read_policy

_BODY = "body"


class MappingFilter:
    """Patterns, of which a record has to match one.

    A pattern for a JSON body and a body that is no JSON never match, nor the other way round.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        """Read patterns.

        Raises:
            ValueError: A pattern is not one.
        """
        try:
            self._policies = [read_policy(pattern, Scope.BODY) for pattern in patterns]
        except FilterPolicyInvalid as problem:
            raise ValueError(str(problem)) from None

    def matches(self, record: Mapping[str, Any]) -> bool:
        """True if a record is wanted."""
        if not self._policies:
            return True
        text = orjson.dumps({**record, _BODY: _read(record[_BODY])}).decode()
        subject = Subject({}, text)
        return any(policy.match(subject) is FilterVerdict.MATCHED for policy in self._policies)


def _read(body: str) -> object:
    """A body as patterns see it: JSON of an object or a list, or else the text."""
    try:
        document: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    return document if isinstance(document, dict | list) else body
