"""Resources that are declared: queues, topics, subscriptions and keys that are to be there when the server starts.

They are tables of the settings file, or of other files in TOML or JSON. Attributes are those of SQS and SNS under
their own names; where those want JSON in a text, a table will do.
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from redrive.settings.values import SettingsInvalid

T = TypeVar("T")

#: The tables of a file that declare something.
TABLES: Final = ("queues", "topics", "keys")
#: Between the paths of several files, as in PATH.
SEPARATOR: Final = os.pathsep
_SUFFIXES: Final = (".json", ".toml")
_ACCOUNT: Final = "000000000000"


@dataclass(frozen=True, slots=True)
class DeclaredQueue:
    """A queue that is to be there."""

    name: str
    account: str  # Account that owns it, twelve digits
    region: str  # Where; empty for the server's own region
    attributes: Mapping[str, str]  # As SetQueueAttributes takes them
    tags: Mapping[str, str]  # Free labels


@dataclass(frozen=True, slots=True)
class DeclaredSubscription:
    """A subscription that is to be there."""

    protocol: str  # As Subscribe takes it
    endpoint: str  # As Subscribe takes it; for `sqs` a queue's bare name will do
    attributes: Mapping[str, str]  # As Subscribe takes them


@dataclass(frozen=True, slots=True)
class DeclaredTopic:
    """A topic that is to be there, with its subscriptions; the rest as for a queue."""

    name: str
    account: str
    region: str
    attributes: Mapping[str, str]
    tags: Mapping[str, str]
    subscriptions: Sequence[DeclaredSubscription]


@dataclass(frozen=True, slots=True)
class DeclaredKey:
    """An access key that is to be there."""

    id: str
    secret: str = field(repr=False)
    account: str


@dataclass(slots=True)
class Declarations:
    """All that is declared."""

    queues: list[DeclaredQueue] = field(default_factory=list)
    topics: list[DeclaredTopic] = field(default_factory=list)
    keys: list[DeclaredKey] = field(default_factory=list)


def read_declarations(paths: str) -> Declarations:
    """Read what files declare.

    Args:
        paths: Files, and directories of files, with colons between them. Other tables than `TABLES` are settings, and
            passed over.

    Raises:
        SettingsInvalid: A file cannot be read, or declares something unusable; the message names it.
    """
    declarations = Declarations()
    for file in _files_at(paths):
        location, document = str(file), _read_document(file)
        declarations.queues += _Table.each(location, document, "queues", _read_queue)
        declarations.topics += _Table.each(location, document, "topics", _read_topic)
        declarations.keys += _Table.each(location, document, "keys", _read_key)
    return declarations


def _files_at(paths: str) -> Iterator[Path]:
    """The files of these paths; of a directory those in TOML and JSON, in order of their names."""
    for path in map(Path, filter(None, paths.split(SEPARATOR))):
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
        else:
            yield path


def _read_document(file: Path) -> Mapping[str, Any]:
    """The object that a file of TOML or JSON holds."""
    try:
        text = file.read_text()
        document = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise SettingsInvalid(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:  # both languages' errors are
        raise SettingsInvalid(f"cannot read {file}: {error}") from None
    if not isinstance(document, dict):
        raise SettingsInvalid(f"{file} is not an object with {', '.join(TABLES)}")
    return document


class _Table:
    """One table of a file. Reading a member removes it; members that are left at the end are unknown."""

    def __init__(self, location: str, members: object) -> None:
        if not isinstance(members, dict):
            raise SettingsInvalid(f"{location} is not a table")
        self.location = location
        self._members = dict(members)

    @classmethod
    def each(
        cls, location: str, members: Mapping[str, Any], name: str, read: "Callable[[_Table], T]"
    ) -> list[T]:
        """The values read from each table of a list."""
        tables = members.get(name, [])
        if not isinstance(tables, list):
            raise SettingsInvalid(f"{location}: {name} is not a list of tables")
        values = []
        for number, table_members in enumerate(tables, start=1):
            table = cls(f"{location}: {name} {number}", table_members)
            values.append(read(table))
            table.refuse_unknown()
        return values

    def text(self, name: str, default: str | None = None) -> str:
        value = self._members.pop(name, default)
        if not isinstance(value, str) or (not value and default is None):
            raise SettingsInvalid(f"{self.location} has no {name}")
        return value

    def tables(self, name: str, read: "Callable[[_Table], T]") -> list[T]:
        values = self.each(self.location, self._members, name, read)
        self._members.pop(name, None)
        return values

    def texts(self, name: str) -> dict[str, str]:
        values = self._members.pop(name, {})
        if not isinstance(values, dict):
            raise SettingsInvalid(f"{self.location} has {name} that are not a table")
        return {key: _text(value) for key, value in values.items()}

    def refuse_unknown(self) -> None:
        if self._members:
            raise SettingsInvalid(f"{self.location} has unknown members: {', '.join(sorted(self._members))}")


def _text(value: object) -> str:
    """An attribute's value as AWS has it: a text, whatever it is."""
    return value if isinstance(value, str) else json.dumps(value)


def _read_queue(table: _Table) -> DeclaredQueue:
    return DeclaredQueue(
        table.text("name"),
        table.text("account", _ACCOUNT),
        table.text("region", ""),
        table.texts("attributes"),
        table.texts("tags"),
    )


def _read_topic(table: _Table) -> DeclaredTopic:
    return DeclaredTopic(
        table.text("name"),
        table.text("account", _ACCOUNT),
        table.text("region", ""),
        table.texts("attributes"),
        table.texts("tags"),
        table.tables("subscriptions", _read_subscription),
    )


def _read_subscription(table: _Table) -> DeclaredSubscription:
    return DeclaredSubscription(table.text("protocol"), table.text("endpoint"), table.texts("attributes"))


def _read_key(table: _Table) -> DeclaredKey:
    return DeclaredKey(table.text("id"), table.text("secret"), table.text("account", _ACCOUNT))
