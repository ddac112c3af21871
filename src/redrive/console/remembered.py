"""Documents of a kind as pages look at them each second: read from the store again only after one of them changed."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Documents

T = TypeVar("T")
LIMIT = 1000


class Remembered(Generic[T]):
    """The documents of a kind that pass a test, of the first thousand of all accounts."""

    def __init__(
        self, documents: Documents, kind: DocumentKind[T], keeps: Callable[[T], bool] = lambda _: True
    ) -> None:
        self._documents = documents
        self._kind = kind
        self._keeps = keeps
        self._known: Sequence[T] | None = None
        self._changes = 0
        documents.on_forget(lambda kind, _: self._changed(kind))
        documents.on_write(lambda kind, _key, _value: self._changed(kind))

    async def all(self) -> Sequence[T]:
        """The documents, in the order of their keys: no read, or one."""
        if self._known is not None:
            return self._known
        before = self._changes
        documents = await self._documents.find(self._kind, "", limit=LIMIT)
        known = [each for each in documents if self._keeps(each)]
        if self._changes == before:  # else one of them may have changed while they were on their way
            self._known = known
        return known

    def _changed(self, kind: str) -> None:
        if kind in ("", self._kind.name):
            self._changes += 1
            self._known = None
