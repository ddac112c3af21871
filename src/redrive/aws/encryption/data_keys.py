"""Data keys: had from KMS or from the root key, and remembered for as long as they may be used."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final, Protocol

from redrive.access.message_seal import DataKey, MessageSeal
from redrive.access.principals import Principal
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import Resource, Runtime
from redrive.model.errors import KeyUnusable

CONTEXT_NAMES: Final = {"sqs": "aws:sqs:arn", "sns": "aws:sns:topicArn"}
OPEN_MS: Final = 300_000  # so long a data key that was opened stays so
_OPEN_MAX: Final = 4096  # data keys, 200 bytes each
_KIND: Final = "data_key"


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
        """A document that nobody else can read."""
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
        inside: Asks KMS in nobody's name.
        clock: Time.
        random_bytes: Chance, for nonces.
    """

    def __init__(self, calls: InnerCalls, inside: KeysInside, root: RootKey, runtime: Runtime) -> None:
        """Ask KMS by these.

        Args:
            calls: Calls KMS in the name of callers.
            inside: Calls KMS for the server itself, without a principal.
            root: The root key, for queues without a key of a customer's.
            runtime: Clock, and random numbers for nonces.
        """
        self.inside = inside
        self.clock = runtime.clock
        self.random_bytes = runtime.rng.randbytes
        self._calls = calls
        self._root = root
        self._open: dict[str, tuple[DataKey, int]] = {}

    async def opened(self, seal: MessageSeal) -> DataKey:
        """The data key that a message was sealed by."""
        now = self.clock.now()
        known = self._open.get(seal.data)
        if known is not None and now < known[1]:
            return known[0]
        if seal.key:
            region = seal.key.split(":")[3]
            plaintext = await self.inside.opened(region, b64decode(seal.data), seal.context)
        else:
            plaintext = self._root_opened(seal)
        data_key = DataKey(plaintext, seal.key, seal.context, seal.data)
        self.remember(seal.data, data_key, now + OPEN_MS)
        return data_key

    def remember(self, data: str, data_key: DataKey, until: int) -> None:
        """Keep a data key in memory, until then (ms)."""
        if len(self._open) >= _OPEN_MAX:
            self._open.clear()
        self._open[data] = (data_key, until)

    def _root_opened(self, seal: MessageSeal) -> bytes:
        (arn,) = seal.context.values()
        root_seal = {"sealed_by": seal.data[:8], "content": seal.data[9:]}
        return b64decode(self._root.opened(Resource(_KIND, arn, 1, root_seal)).document["data_key"])

    def root_sealed(self, arn: str, plaintext: bytes) -> str:
        """A data key for the queue of an ARN, encrypted by the root key, as text."""
        sealed = self._root.sealed(_KIND, arn, {"data_key": b64encode(plaintext).decode()})
        return f"{sealed['sealed_by']}.{sealed['content']}"

    # ---- rights -----------------------------------------------------------------------------------------

    async def decrypted(
        self, principal: Principal, region: str, key: str, seal: MessageSeal, keys: Mapping[str, Any]
    ) -> None:
        """Ask KMS to decrypt a data key in the name of somebody.

        Raises:
            KeyUnusable: It refuses.
        """
        service = "sns" if CONTEXT_NAMES["sns"] in seal.context else "sqs"
        params = {
            "CiphertextBlob": b64decode(seal.data),
            "EncryptionContext": seal.context,
            "KeyId": key,
        }
        await self.ask("Decrypt", params, principal, region, service, keys)

    async def ask(
        self,
        operation: str,
        params: dict[str, Any],
        principal: Principal,
        region: str,
        service: str,
        keys: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Call KMS on behalf of a principal, through a service.

        Raises:
            KeyUnusable: It refuses.
        """
        via = {"kms:ViaService": f"{service}.{region}.amazonaws.com", **keys}
        try:
            return await self._calls.call("kms", operation, params, principal, region, keys=via)
        except AwsError as refused:
            raise KeyUnusable(refused.message, refused.code) from refused
