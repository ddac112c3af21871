"""The key of queues that have no customer's: it wraps their data keys, and the root key wraps it.

So the root key can be exchanged: it wraps documents, which are wrapped anew, and never messages, which cannot be.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final

from redrive.aws.encryption.data_keys import RootKey
from redrive.engine.ports import Put, Resource, Runtime, Store
from redrive.model.errors import Conflict, StoreUnavailable

KIND: Final = "queue_key"
_KEY: Final = "key"
_BYTES: Final = 32


class QueueKey:
    """The `RootKey` of messages."""

    def __init__(
        self, store: Store, root: RootKey, seal_by: Callable[[bytes], RootKey], runtime: Runtime
    ) -> None:
        """Keep it; `open` comes first.

        Args:
            store: Where it is.
            root: Wraps it.
            seal_by: Seals with a key of 32 bytes.
            runtime: Chance, for its bytes.
        """
        self._store = store
        self._root = root
        self._seal_by = seal_by
        self._random_bytes = runtime.rng.randbytes
        self._seal: RootKey | None = None

    async def open(self) -> None:
        """Find it, or make it where there is none, and wrap it by the present root key.

        Raises:
            StoreUnavailable: None of the root keys that this server has wrapped it.
        """
        while self._seal is None:
            stored = await self._store.get(KIND, _KEY)
            content = self._random_bytes(_BYTES) if stored is None else self._content(stored)
            try:
                if stored is None or not self._root.is_of_first(stored.document["wrapped"]):
                    version = 0 if stored is None else stored.version
                    await self._store.write([Put(KIND, _KEY, self._wrapped(content), version)])
            except Conflict:
                continue  # another node was faster
            self._seal = self._seal_by(content)

    def sealed(self, kind: str, key: str, document: Any) -> Any:
        """A document that nobody else can read."""
        return self._present.sealed(kind, key, document)

    def is_of_first(self, document: Any) -> bool:
        """True if this key has sealed the document."""
        return self._present.is_of_first(document)

    def opened(self, resource: Resource) -> Resource:
        """The document as it was, also where the root key itself has sealed it, as it did before there was this key."""
        key = self._present if self.is_of_first(resource.document) else self._root
        return key.opened(resource)

    @property
    def _present(self) -> RootKey:
        if self._seal is None:
            raise StoreUnavailable("the key of queues is not open yet")
        return self._seal

    def _wrapped(self, content: bytes) -> dict[str, Any]:
        return {"wrapped": self._root.sealed(KIND, _KEY, {"key": b64encode(content).decode()})}

    def _content(self, resource: Resource) -> bytes:
        opened = self._root.opened(resource._replace(document=resource.document["wrapped"]))
        return b64decode(opened.document["key"])
