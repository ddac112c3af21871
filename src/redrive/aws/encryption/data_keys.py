"""Data keys: had from KMS or from the root key, and remembered for as long as they may be used.

Data keys of queues without a customer's key are wrapped by the key of queues, and that by the root key. So the root key
can be exchanged: it wraps documents, which are wrapped anew, and never messages, which cannot be.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from redrive.access.message_seal import DataKey, MessageSeal
from redrive.access.principals import Principal
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import NodeStore, Put, Resource, Runtime, Store
from redrive.model.errors import Conflict, KeyUnusable, StoreUnavailable

CONTEXT_NAMES: Final = {"sqs": "aws:sqs:arn", "sns": "aws:sns:topicArn"}
OPEN_MS: Final = 300_000  # so long a data key that was opened stays so
_OPEN_MAX: Final = 4096  # data keys, 200 bytes each
_KIND: Final = "data_key"
KIND: Final = "queue_key"
_KEY: Final = "key"
_BYTES: Final = 32


class KeysInside(Protocol):
    """The server's own use of KMS's keys; see `redrive.aws.kms.inside`."""

    async def data_key(
        self, account: str, region: str, key_id: str, context: Mapping[str, str]
    ) -> tuple[str, bytes, bytes]:
        """The ARN of the key, a new data key, and the same encrypted."""
        ...

    async def opened(self, region: str, blob: bytes, context: Mapping[str, str]) -> bytes:
        """The data key that was encrypted so."""
        ...


class RootKey(Protocol):
    """A key that seals documents, data keys among them; see `redrive.stores.seal`."""

    def is_of_first(self, document: Any) -> bool:
        """True if it has sealed the document, and no older one that it opens as well."""
        ...

    def sealed(self, kind: str, key: str, document: Any) -> Any:
        """A document that no one else can read."""
        ...

    def opened(self, resource: Resource) -> Resource:
        """The document as it was.

        Raises:
            StoreUnavailable: Another key has sealed it.
        """
        ...


class DataKeys:
    """The data keys by which messages are sealed and opened, and KMS's answers about the right to use them.

    Attributes:
        inside: Calls KMS for the server itself.
        clock: Time.
        random_bytes: Chance, for nonces.
        store: Knows whether a node of an older version may have to open what is sealed now.
    """

    def __init__(
        self,
        calls: InnerCalls,
        inside: KeysInside,
        root: RootKey,
        runtime: Runtime,
        store: NodeStore,
    ) -> None:
        self.inside = inside
        self.store = store
        self.clock = runtime.clock
        self.random_bytes = runtime.rng.randbytes
        self._calls = calls
        self._root = root
        self._open: dict[str, tuple[DataKey, int]] = {}

    def known(self, seal: MessageSeal, now: int) -> DataKey | None:
        """The data key that a message was sealed by, if it is remembered."""
        known = self._open.get(seal.data)
        return known[0] if known is not None and now < known[1] else None

    async def opened(self, seal: MessageSeal) -> DataKey:
        """The data key that a message was sealed by."""
        now = self.clock.now()
        known = self.known(seal, now)
        if known is not None:
            return known
        if seal.key:
            region = parse_arn(seal.key).region
            plaintext = await self.inside.opened(region, b64decode(seal.data), seal.context)
        else:
            plaintext = self._open_by_root(seal)
        data_key = DataKey(plaintext, seal)
        self.remember(seal.data, data_key, now + OPEN_MS)
        return data_key

    def remember(self, data: str, data_key: DataKey, until: int) -> None:
        """Keep a data key in memory, until then (ms)."""
        if len(self._open) >= _OPEN_MAX:
            self._open.clear()
        self._open[data] = (data_key, until)

    def _open_by_root(self, seal: MessageSeal) -> bytes:
        (arn,) = seal.context.values()
        root_seal = {"sealed_by": seal.data[:8], "content": seal.data[9:]}
        return b64decode(self._root.opened(Resource(_KIND, arn, 1, root_seal)).document["data_key"])

    def root_sealed(self, arn: str, plaintext: bytes) -> str:
        """A data key for the queue of an ARN, encrypted by the root key, as text."""
        sealed = self._root.sealed(_KIND, arn, {"data_key": b64encode(plaintext).decode()})
        return f"{sealed['sealed_by']}.{sealed['content']}"

    # ---- rights -----------------------------------------------------------------------------------------

    async def check_may_decrypt(
        self,
        principal: Principal,
        region: str,
        seal: MessageSeal,
        condition_keys: Mapping[str, Any],
    ) -> None:
        """Have KMS decrypt a data key, only to learn whether a principal may; raises KeyUnusable if it refuses."""
        service = "sns" if CONTEXT_NAMES["sns"] in seal.context else "sqs"
        params = {
            "CiphertextBlob": b64decode(seal.data),
            "EncryptionContext": seal.context,
            "KeyId": seal.key,
        }
        await self.ask("Decrypt", params, principal, region, service, condition_keys)

    async def ask(
        self,
        operation: str,
        params: dict[str, Any],
        principal: Principal,
        region: str,
        service: str,
        keys: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Call KMS on behalf of a principal, through a service; raises KeyUnusable if it refuses."""
        via = {"kms:ViaService": f"{service}.{region}.amazonaws.com", **keys}
        try:
            return await self._calls.call("kms", operation, params, principal, region, keys=via)
        except AwsError as refused:
            raise KeyUnusable(refused.message, refused.code) from refused


class QueueKey:
    """The `RootKey` of messages."""

    def __init__(
        self, store: Store, root: RootKey, seal_by: Callable[[bytes], RootKey], runtime: Runtime
    ) -> None:
        self._store = store
        self._root = root
        self._seal_by = seal_by
        self._random_bytes = runtime.rng.randbytes
        self._seal: RootKey | None = None

    async def open(self) -> None:
        """Find the key in the store, or make it where there is none, and wrap it by the present root key.

        Raises:
            StoreUnavailable: None of the root keys that this server has wrapped it.
        """
        while self._seal is None:
            stored = await self._store.get(KIND, _KEY)
            content = self._random_bytes(_BYTES) if stored is None else self._content(stored)
            try:
                if stored is None or not self._root.is_of_first(stored.document["wrapped"]):
                    version = 0 if stored is None else stored.version
                    await self._store.write([Put(KIND, _KEY, self._wrap(content), version)])
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

    def _wrap(self, content: bytes) -> dict[str, Any]:
        return {"wrapped": self._root.sealed(KIND, _KEY, {"key": b64encode(content).decode()})}

    def _content(self, resource: Resource) -> bytes:
        opened = self._root.opened(resource._replace(document=resource.document["wrapped"]))
        return b64decode(opened.document["key"])
