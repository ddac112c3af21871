"""The ring: all keys and aliases of a server, and the changes of keys that fall due."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from redrive.aws.kms.errors import not_found
from redrive.aws.kms.material import Materials
from redrive.aws.kms.records import ALIAS, DAY_MS, GRANT, KEY, KeyAlias, KmsKey, key_arn
from redrive.engine.ports import Runtime
from redrive.engine.resources import Documents, Draft
from redrive.model.errors import NotFound
from redrive.model.names import ResourceName, id_text

logger = logging.getLogger(__name__)

MANAGED_PREFIX: Final = "alias/aws/"
#: The services that have their own key in each account; `alias/aws/` and the name.
_SERVICES: Final = {
    *(
        "acm",
        "dynamodb",
        "ebs",
        "elasticfilesystem",
        "kinesis",
        "lambda",
        "logs",
        "rds",
        "s3",
        "secretsmanager",
    ),
    *("sns", "sqs", "ssm"),
}
_ROTATION_DAYS: Final = 365  # of keys that belong to services


class KeyRing:
    """Keys and aliases of all accounts and regions."""

    def __init__(self, documents: Documents, materials: Materials, runtime: Runtime) -> None:
        self._documents = documents
        self._materials = materials
        self._runtime = runtime

    def new_id(self, *, multi_region: bool = False) -> str:
        """A new unique id."""
        text = id_text(self._runtime.message_id())
        return f"mrk-{text.replace('-', '')}" if multi_region else text

    # ---- reading ----------------------------------------------------------------------------------------

    async def get(self, name: ResourceName, now: int) -> KmsKey | None:
        """The key of a name, after the changes due by now (ms): its deletion, a rotation, or the end of its material."""
        key = await self._documents.get(KEY, name.key)
        if key is None or not _is_due(key, now):
            return key
        return await self._catch_up(key, now)

    async def of_alias(self, name: ResourceName, now: int) -> KmsKey | None:
        """The key of an alias; that of a service is created when it is asked for first. None: there is no such alias."""
        alias = await self._documents.get(ALIAS, name.key)
        if alias is None:
            service = name.name.removeprefix(MANAGED_PREFIX)
            return await self._service_key(name, service, now) if service in _SERVICES else None
        return await self.get(name._replace(name=alias.key_id), now)

    async def of_account(self, account: str, region: str, now: int) -> list[KmsKey]:
        """All keys of an account in a region, in order of their ids."""
        prefix = ResourceName(account, region).key
        return await self._present(await self._documents.find(KEY, prefix), now)

    async def tidy(self, now: int) -> None:
        """Make the changes that are due, for all keys."""
        await self._present(await self._documents.find(KEY, ""), now)

    async def wrap_anew(self) -> None:
        """Wrap the material of all keys by the present root key, if an older one wrapped it.

        Raises:
            StoreUnavailable: The root key that wrapped it is not among those of this server.
        """
        count = 0
        for _, key in await self._documents.entries(KEY):
            materials = self._materials.rewrap(key)
            if materials is not None:
                count += 1
                await self.change(
                    key.name,
                    lambda current: replace(
                        current, materials=self._materials.rewrap(current) or current.materials
                    ),
                )

        if count:
            logger.info(
                "kms.wrapped_anew keys=%d: all of them are encrypted by the first root key now", count
            )

    async def _present(self, keys: list[KmsKey], now: int) -> list[KmsKey]:
        current_keys = [await self._catch_up(key, now) if _is_due(key, now) else key for key in keys]
        return [key for key in current_keys if key is not None]

    async def aliases(self, account: str, region: str) -> list[KeyAlias]:
        """All aliases of an account in a region, in order of their names."""
        return await self._documents.find(ALIAS, ResourceName(account, region).key)

    # ---- writing ----------------------------------------------------------------------------------------

    async def add(self, key: KmsKey) -> None:
        """Store a new key."""
        await self._documents.create(KEY, key.name.key, key)

    async def change(self, name: ResourceName, change: Callable[[KmsKey], KmsKey]) -> KmsKey:
        """Change a key; raises AwsError if it does not exist any more."""
        try:
            return await self._documents.update(KEY, name.key, change)
        except NotFound:
            raise not_found(f"Key '{key_arn(name)}' does not exist") from None

    async def _service_key(self, alias: ResourceName, service: str, now: int) -> KmsKey:
        """The key that a service's alias leads to, created with the alias if that does not exist."""
        name = alias._replace(name=self.new_id())
        key = KmsKey(
            name,
            now,
            "SYMMETRIC_DEFAULT",
            "ENCRYPT_DECRYPT",
            _managed_policy(name, service),
            (self._materials.symmetric(name, now),),
            manager="AWS",
            description=f"Default key that protects my {service.upper()} data when no other key is defined",
            rotation_days=_ROTATION_DAYS,
            rotates_at=now + _ROTATION_DAYS * DAY_MS,
        )

        async def decide(draft: Draft) -> str:
            document = await draft.get(ALIAS, alias.key)
            if document is not None:
                return document.key_id
            draft.put(KEY, name.key, key)
            draft.put(ALIAS, alias.key, KeyAlias(alias, name.name, now, now))
            return name.name

        key_id = await self._documents.transact(decide)
        return key if key_id == name.name else await self._require(alias._replace(name=key_id))

    async def _require(self, name: ResourceName) -> KmsKey:
        key = await self._documents.get(KEY, name.key)
        if key is None:
            raise not_found(f"Key '{key_arn(name)}' does not exist")
        return key

    # ---- due changes --------------------------------------------------------------------------------------

    async def _catch_up(self, key: KmsKey, now: int) -> KmsKey | None:
        """Carry out what is due for a key: its deletion, the expiry of its materials, or its rotation."""
        if key.deletion_at is not None and key.deletion_at <= now:
            await self._delete(key)
            return None
        if any(material.expires_at is not None and material.expires_at <= now for material in key.materials):
            return await self.change(key.name, lambda current: _without_expired(current, now))
        return await self.change(key.name, lambda current: self._rotate(current, now))

    def _rotate(self, key: KmsKey, now: int) -> KmsKey:
        """The key after the rotation that is due; if several are, only the last is made up for."""
        if key.rotates_at is None or key.rotation_days is None or key.rotates_at > now:
            return key
        period_ms = key.rotation_days * DAY_MS
        rotated_at = key.rotates_at + (now - key.rotates_at) // period_ms * period_ms
        material = self._materials.symmetric(key.name, rotated_at, rotation="AUTOMATIC")
        return replace(key, materials=(*key.materials, material), rotates_at=rotated_at + period_ms)

    async def _delete(self, key: KmsKey) -> None:
        """Delete a key with its material, its aliases and its grants."""

        async def decide(draft: Draft) -> None:
            current = await draft.get(KEY, key.name.key)
            if current is None or current.deletion_at != key.deletion_at:  # it was cancelled, or put off
                return
            draft.remove(KEY, key.name.key)
            for region in {*current.replica_regions, current.primary_region} - {"", key.name.region}:
                family_key = await draft.get(KEY, key.name._replace(region=region).key)
                if family_key is not None:
                    remaining = tuple(each for each in family_key.replica_regions if each != key.name.region)
                    draft.put(KEY, family_key.name.key, replace(family_key, replica_regions=remaining))
            for document_key, _ in await draft.find(GRANT, f"{key.name.key}/"):
                draft.remove(GRANT, document_key)
            for document_key, alias in await draft.find(
                ALIAS, ResourceName(key.name.account, key.name.region).key
            ):
                if alias.key_id == key.id:
                    draft.remove(ALIAS, document_key)

        await self._documents.transact(decide)


def _is_due(key: KmsKey, now: int) -> bool:
    if key.deletion_at is not None:
        return key.deletion_at <= now
    return (key.rotates_at is not None and key.enabled and key.rotates_at <= now) or any(
        material.expires_at is not None and material.expires_at <= now for material in key.materials
    )


def _without_expired(key: KmsKey, now: int) -> KmsKey:
    materials = tuple(
        material for material in key.materials if material.expires_at is None or material.expires_at > now
    )
    return replace(key, materials=materials)


def _managed_policy(name: ResourceName, service: str) -> str:
    """Principals of the account may use the key through the service only; no one may change it."""
    through = {
        "StringEquals": {
            "kms:CallerAccount": name.account,
            "kms:ViaService": f"{service}.{name.region}.amazonaws.com",
        }
    }
    use = [
        "kms:Encrypt",
        "kms:Decrypt",
        "kms:ReEncrypt*",
        "kms:GenerateDataKey*",
        "kms:CreateGrant",
        "kms:DescribeKey",
    ]
    look = ["kms:Describe*", "kms:Get*", "kms:List*"]
    statements = [
        {
            "Sid": f"Allow access through {service.upper()} for all principals in the account that are authorized",
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            "Action": use,
            "Resource": "*",
            "Condition": through,
        },
        {
            "Sid": "Allow direct access to key metadata to the account",
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{name.account}:root"},
            "Action": look,
            "Resource": "*",
        },
    ]
    document = {"Version": "2012-10-17", "Id": f"auto-{service}-1", "Statement": statements}
    return json.dumps(document)
