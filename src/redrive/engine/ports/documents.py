"""Documents: what is configured, as small versioned documents of a kind each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of resource: how its values are written as documents, and read back."""

    name: str
    write: Callable[[T], Mapping[str, Any]]
    read: Callable[[Mapping[str, Any]], T]
