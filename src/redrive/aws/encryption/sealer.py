"""Sealers of queues and topics: each has a data key for some time, and knows whose right to it KMS confirmed."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.access.message_seal import DATA_KEY_BYTES, NONCE_BYTES, DataKey, MessageSeal
from redrive.access.policy import source_keys
from redrive.access.principals import Principal, service_principal
from redrive.aws.encryption import refusals
from redrive.aws.encryption.data_keys import CONTEXT_NAMES, DataKeys
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import Sealer, StoredContent
from redrive.model.attempt import Attempt
from redrive.model.errors import KeyUnusable
from redrive.model.names import ResourceName
from redrive.model.topic import Topic

_REMEMBERED_MAX: Final = 10_000  # rights, some 300 bytes each
KEY: Final = "KmsMasterKeyId"
KEY_REUSE: Final = "KmsDataKeyReusePeriodSeconds"
REUSE_SECONDS: Final = 300
_ROOT_REUSE_MS: Final = 3_600_000  # of a data key that the root key encrypted: nobody can take it away


class RememberedRights:
    """The rights of principals, told apart by all that KMS's answer depended on.

    A principal is its permissions (whose object lasts until a policy of its own changes, and is another for each
    session) and the condition keys that follow from who it is. Its name will not do: sessions of one name differ.

    Attributes:
        version: Moves when all rights are forgotten: KMS's answer to a question of before does not count any more.
    """

    def __init__(self) -> None:
        self.version = 0
        self._rights: dict[tuple[str, int, object], tuple[Principal, int]] = {}

    def has(self, principal: Principal, about: object, now: int) -> bool:
        """True if a right to a key, under an encryption context, was confirmed and still counts."""
        known = self._rights.get((principal.name, id(principal.permissions), about))
        return known is not None and now < known[1] and _are_alike(known[0], principal)

    def add(self, principal: Principal, about: object, until: int, version: int) -> None:
        """Remember until a time (ms) a right that KMS confirmed, unless rights were forgotten since `version`."""
        if version != self.version:
            return
        if len(self._rights) >= _REMEMBERED_MAX:
            self._rights.clear()
        self._rights[principal.name, id(principal.permissions), about] = principal, until

    def clear(self) -> None:
        """Forget all rights: a key, an alias or a grant has changed."""
        self.version += 1
        self._rights.clear()


def _are_alike(remembered: Principal, principal: Principal) -> bool:
    """True if KMS's answer to one holds for the other: rights, identities and condition keys are the same."""
    return remembered is principal or (
        remembered.permissions is principal.permissions
        and remembered.identities == principal.identities
        and remembered.keys == principal.keys
    )


class QueueSealer(Sealer):
    """Seals what enters a queue, or the backlogs of a topic."""

    def __init__(
        self,
        keys: DataKeys,
        rights: RememberedRights,
        service: str,
        name: ResourceName,
        key_id: str,
        attributes: Mapping[str, str],
    ) -> None:
        """Seal by a key.

        Args:
            keys: Where data keys come from.
            rights: Those that KMS confirmed.
            service: `sqs` or `sns`.
            name: Of the queue or the topic.
            key_id: As its attribute names it; empty: the root key.
            attributes: Of the queue or the topic.
        """
        self.key_id = key_id
        self.attributes = attributes
        self.arn = f"arn:aws:{service}:{name.region}:{name.account}:{name.name}"
        self.reuse_ms = int(attributes.get(KEY_REUSE, REUSE_SECONDS)) * 1000
        self._keys = keys
        self._rights = rights
        self._sender = self.arn, key_id, self.reuse_ms
        self._service = service
        self._account = name.account
        self._region = name.region.partition(":")[0]  # of a place that no caller can name, too
        self._context = {CONTEXT_NAMES[service]: self.arn}
        self._data_key: DataKey | None = None
        self._data_key_of = ""  # The id of the key that wrapped it; empty: the root key
        self._until = 0  # When another data key is due (ms)

    @property
    @override
    def lasts(self) -> bool:
        return not self.key_id

    @override
    async def prepare(self) -> None:
        """Have a data key ready for `seal`; raises KeyUnusable if KMS gives none."""
        now = self._keys.clock.now()
        if self._data_key is not None and now < self._until:
            return
        if not self.key_id:
            plaintext = self._keys.random_bytes(DATA_KEY_BYTES)
            data = self._keys.root_sealed(self.arn, plaintext)
            self._use(plaintext, "", data, now + _ROOT_REUSE_MS)
            return
        try:
            key, plaintext, blob = await self._keys.inside.data_key(
                self._account, self._region, self._key_arn(), self._context
            )
        except AwsError as refused:
            raise KeyUnusable(refused.message, refused.code) from refused
        self._use(plaintext, key, b64encode(blob).decode(), now + self.reuse_ms)

    def _use(self, plaintext: bytes, key: str, data: str, until: int) -> None:
        self._data_key = DataKey(plaintext, MessageSeal(key, self._context, data))
        self._data_key_of, self._until = key, until
        self._keys.remember(data, self._data_key, until)

    @override
    def seal(self, queue_id: int, message_id: bytes, body: str, headers: bytes | None) -> StoredContent:
        """A message encrypted by the data key, as text while nodes of an older version share the store."""
        if self._data_key is None:
            raise RuntimeError("seal() before prepare()")
        nonce = self._keys.random_bytes(NONCE_BYTES)
        if self._keys.store.has_older_nodes:
            return self._data_key.seal_as_text(nonce, queue_id, message_id, body, headers)
        return self._data_key.seal(nonce, queue_id, message_id, body, headers)

    # ---- rights -----------------------------------------------------------------------------------------

    @override
    async def admit(self, topic: Topic) -> Attempt | None:
        """The attempt that fails since the topic may not use the queue's key; None: it may."""
        if not self.key_id:
            return None
        principal = service_principal("sns", topic.name.region)
        arn = f"arn:aws:sns:{topic.name.region}:{topic.name.account}:{topic.name.name}"
        keys = source_keys(arn=arn, account=topic.name.account)
        try:
            await self.admit_principal(principal, keys, arn)
        except KeyUnusable as refused:
            return refusals.attempt(refused)
        return None

    def has_admitted(self, call: Call) -> bool:
        """True if the right of a caller still counts, and its data key serves."""
        return self._data_key is not None and self._rights.has(call.principal, self._sender, call.now)

    async def admit_principal(
        self, principal: Principal, keys: Mapping[str, Any] | None = None, source: str = ""
    ) -> None:
        """Refuse a principal that may not use the queue's KMS key; have a data key, at most as old as the reuse period.

        KMS makes a data key in the principal's name; that one is used where another is due.

        Args:
            principal: Who sends.
            keys: Further condition keys.
            source: The ARN of the resource that a service sends for.

        Raises:
            KeyUnusable: KMS refuses.
        """
        right = (*self._sender, source) if source else self._sender
        now = self._keys.clock.now()
        if self._data_key is not None and self._rights.has(principal, right, now):
            return
        region, condition_keys = self._region, keys or {}
        params = {
            "KeyId": self._key_arn(),
            "KeySpec": "AES_256",
            "EncryptionContext": self._context,
        }
        ask, version = self._keys.ask, self._rights.version
        answer = await ask("GenerateDataKey", params, principal, region, self._service, condition_keys)
        key, data = answer["KeyId"], b64encode(answer["CiphertextBlob"]).decode()
        seal = MessageSeal(key, self._context, data)
        await self._keys.check_may_decrypt(principal, region, seal, condition_keys)
        if key != self._data_key_of or now >= self._until:
            self._use(answer["Plaintext"], key, data, now + self.reuse_ms)
        self._rights.add(principal, right, now + self.reuse_ms, version)

    def _key_arn(self) -> str:
        """The key's id or alias, which is of the owner's account wherever the caller is from."""
        if self.key_id.startswith("arn:"):
            return self.key_id
        resource = self.key_id if self.key_id.startswith("alias/") else f"key/{self.key_id}"
        return f"arn:aws:kms:{self._region}:{self._account}:{resource}"
