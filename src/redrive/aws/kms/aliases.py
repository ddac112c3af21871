"""Aliases: names for keys that can be given to another key."""

import re
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kms.access import KeyAccess
from redrive.aws.kms.errors import PAGES, error, not_found, not_valid, wrong_state
from redrive.aws.kms.keyring import MANAGED_PREFIX, KeyRing
from redrive.aws.kms.records import ALIAS, KEY, KeyAlias, KmsKey, alias_arn
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents, Draft
from redrive.model.errors import Conflict
from redrive.model.names import ResourceName

_PREFIX: Final = "alias/"
_NAME: Final = re.compile(r"alias/[a-zA-Z0-9/_-]+")
_WITHOUT_PREFIX: Final = (
    'Alias must start with the prefix "alias/". Please see'
    " https://docs.aws.amazon.com/kms/latest/developerguide/kms-alias.html"
)


class Aliases:
    """Makes, moves, lists and removes aliases."""

    def __init__(self, keyring: KeyRing, access: KeyAccess, documents: Documents) -> None:
        self._keyring = keyring
        self._access = access
        self._documents = documents

    async def create_alias(self, call: Call, params: Structure) -> Structure:
        name = _checked_name(call, params["AliasName"])
        key = await self._target(call, params["TargetKeyId"], "CreateAlias")
        try:
            await self._documents.create(ALIAS, name.key, KeyAlias(name, key.id, call.now, call.now))
        except Conflict:
            text = f"An alias with the name {alias_arn(name)} already exists"
            raise error("AlreadyExistsException", text) from None
        return {}

    async def update_alias(self, call: Call, params: Structure) -> Structure:
        name = _checked_name(call, params["AliasName"])
        if await self._documents.get(ALIAS, name.key) is None:
            raise _no_alias(name)
        key = await self._target(call, params["TargetKeyId"], "UpdateAlias")

        async def decide(draft: Draft) -> None:
            alias = await draft.get(ALIAS, name.key)
            if alias is None:
                raise _no_alias(name)
            current = await draft.get(KEY, name._replace(name=alias.key_id).key)
            # "Controlling access to aliases": the policies of both keys have to allow it.
            if current is not None:
                await self._access.check(call, current, "UpdateAlias")
            if current is not None and (current.spec, current.usage) != (key.spec, key.usage):
                raise not_valid(
                    f"Alias {alias.arn} cannot be changed from a key of spec {current.spec} and usage"
                    f" {current.usage} to one of spec {key.spec} and usage {key.usage}"
                )
            draft.put(ALIAS, name.key, replace(alias, key_id=key.id, updated_at=call.now))

        await self._documents.transact(decide)
        return {}

    async def delete_alias(self, call: Call, params: Structure) -> Structure:
        name = _checked_name(call, params["AliasName"])

        async def decide(draft: Draft) -> None:
            alias = await draft.get(ALIAS, name.key)
            if alias is None:
                raise _no_alias(name)
            key = await draft.get(KEY, name._replace(name=alias.key_id).key)
            if key is not None:
                await self._access.check(call, key, "DeleteAlias")
            draft.remove(ALIAS, name.key)

        await self._documents.transact(decide)
        return {}

    async def list_aliases(self, call: Call, params: Structure) -> Structure:
        aliases = await self._keyring.aliases(call.account, call.region)
        if key_id := params.get("KeyId"):
            key = await self._access.managed_key(call, key_id, "ListAliases")
            aliases = [alias for alias in aliases if alias.key_id == key.id]
        page, answer = PAGES.cut("ListAliases", params, aliases, lambda alias: alias.name.name, size=50)
        return {"Aliases": [_as_structure(alias) for alias in page], **answer}

    async def _target(self, call: Call, key_id: str, operation: str) -> KmsKey:
        """The key that an alias may be given to; raises AwsError."""
        if key_id.startswith(_PREFIX) or ":alias/" in key_id:
            raise not_valid("Aliases must refer to keys. Not aliases")
        key = await self._access.changeable_key(call, key_id, operation)
        if key.name.region != call.region:
            raise wrong_state(key, f"not in {call.region}")
        return key


def _checked_name(call: Call, alias: str) -> ResourceName:
    if not alias.startswith(_PREFIX):
        raise not_valid(_WITHOUT_PREFIX)
    if alias.startswith(MANAGED_PREFIX):
        text = "Aliases that begin with alias/aws/ are reserved: nobody can make, change or delete them."
        raise AwsError("NotAuthorizedException", text)
    if not _NAME.fullmatch(alias):
        raise error(
            "InvalidAliasNameException", f"{alias} has other characters than letters, digits, / _ and -"
        )
    return ResourceName(call.account, call.region, alias)


def _no_alias(name: ResourceName) -> AwsError:
    return not_found(f"Alias {alias_arn(name)} is not found.")


def _as_structure(alias: KeyAlias) -> Structure:
    return {
        "AliasName": alias.name.name,
        "AliasArn": alias.arn,
        "TargetKeyId": alias.key_id,
        "CreationDate": alias.created_at,
        "LastUpdatedDate": alias.updated_at,
    }
