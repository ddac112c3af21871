"""Documents: what is configured, as small versioned documents of a kind each, and how several of them change at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

T = TypeVar("T")


class _Documented(Protocol):
    """A value that knows its document."""

    def to_document(self) -> Mapping[str, Any]:
        """The value as a JSON-ready document."""
        ...

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        ...


D = TypeVar("D", bound=_Documented)


class Resource(NamedTuple):
    """One small configuration document, as it is stored."""

    kind: str  # `queue`, `task`, `access_key` …
    key: str  # Unique within the kind; listed in byte order
    version: int  # Grows by one with every change, from 1
    document: Mapping[str, Any]  # JSON-ready


class Put(NamedTuple):
    """Write a document over its stored version, or create it (0).

    Each write adds one to the version. A new document begins at `first`.
    """

    kind: str
    key: str
    document: Mapping[str, Any]
    version: int = 0
    first: int = 1


class Remove(NamedTuple):
    """Delete a document: its stored version (1 and above), or whatever is stored, if anything (None)."""

    kind: str
    key: str
    version: int | None = None


class Require(NamedTuple):
    """Change nothing unless a document exists at this version, and keep it there until the write is done.

    What is not there (0) cannot be kept away: another write may put it at the same time.
    """

    kind: str
    key: str
    version: int


class RequireNone(NamedTuple):
    """Change nothing unless, after all changes, no document of the kind has a key with this prefix.

    Whoever adds such documents must require or change, in the same write, a document that this write changes as well:
    two writes that have no document in common do not see each other.
    """

    kind: str
    prefix: str


Change = Put | Remove | Require | RequireNone


def refuse_repeated(changes: Sequence[Change]) -> None:
    """Raise ValueError if a write names a document twice."""
    keys: set[tuple[str, str]] = set()
    for change in changes:
        if isinstance(change, RequireNone):
            continue
        if (change.kind, change.key) in keys:
            raise ValueError(f"{change.kind} {change.key} is named twice in one write")
        keys.add((change.kind, change.key))


@dataclass(frozen=True, slots=True)
class DocumentKind(Generic[T]):
    """A kind of resource: how its values are written as documents, and read back."""

    name: str  # The kind of its documents
    write: Callable[[T], Mapping[str, Any]]  # Makes a document of a value
    read: Callable[[Mapping[str, Any]], T]  # Makes a value of a document
    # Its documents hold what no answer shows (parameters with `NoEcho`, environment variables): they are
    # sealed by the key of the server's own, also in a store whose documents have no key of the operator's.
    secret: bool = False

    @classmethod
    def of(cls, name: str, value: type[D], *, secret: bool = False) -> "DocumentKind[D]":
        """The kind of values that know their documents."""
        return DocumentKind(name, value.to_document, value.from_document, secret)


class Unremembered:
    """A value of a kind that has very many, each read seldom: no node caches it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Creation(Generic[T]):
    """A value to write if there is none."""

    kind: DocumentKind[T]
    key: str
    value: T


@dataclass(frozen=True, slots=True)
class Removal:
    """A value to remove, if it exists."""

    kind: DocumentKind[Any]
    key: str
