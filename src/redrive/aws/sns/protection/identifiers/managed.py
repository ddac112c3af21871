"""The data identifiers that Amazon manages, by their names, and those that cannot be had here."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from redrive.aws.sns.protection.identifiers import credentials, documents, financial, health, personal
from redrive.aws.sns.protection.identifiers.rows import IdentifierRow
from redrive.model.protection import Either, Finder

_PHONE: Final = "PhoneNumber"
_ROWS: Final[Mapping[str, tuple[IdentifierRow, ...]]] = {
    **{
        name: (row,)
        for module in (credentials, documents, financial, health, personal)
        for name, row in module.ROWS.items()
    },
    "IpAddress": credentials.ADDRESSES,
    **documents.PHONES,
    _PHONE: tuple(row for rows in documents.PHONES.values() for row in rows),
}

#: Found by models of language at Amazon; a pattern would pass most of them unseen.
WITHOUT_PATTERN: Final = frozenset({"Address", "Name"})

NAMES: Final = frozenset(_ROWS)


@lru_cache(maxsize=len(NAMES))
def finder_of(name: str) -> Finder:
    """The finder of one of NAMES; made when it is first asked for, since all of them take 0.2 s."""
    rows = _ROWS[name]
    return rows[0].finder() if len(rows) == 1 else Either([row.finder() for row in rows])
