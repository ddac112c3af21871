"""Access keys of users, two each at most; the server accepts them as it accepts accounts' own."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from redrive.access.identities import USER_KEY, USER_KEYS_MAX
from redrive.access.keys import AccessKey, Keyring, new_access_key
from redrive.access.session_tokens import lasting_key_id
from redrive.aws.iam.entities import USERS, name_in
from redrive.aws.iam.errors import PAGES, absent, too_many
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.engine.resources import Draft, Resources

_ACTIVE: Final = "Active"


class AccessKeyOperations:
    """Creates, shows, changes and deletes access keys."""

    def __init__(self, resources: Resources, runtime: Runtime, keyring: Keyring) -> None:
        """Do it here.

        Args:
            resources: Where keys are kept.
            runtime: Chance, that nobody can guess.
            keyring: Remembers keys for seconds, and is told of changes.
        """
        self._resources = resources
        self._runtime = runtime
        self._keyring = keyring

    async def create_access_key(self, call: Call, params: Structure) -> Structure:
        name, rng = name_in(call, params), self._runtime.rng
        fresh = new_access_key(call.account, call.now, rng)
        key_id = lasting_key_id(call.account, rng)

        async def decide(draft: Draft) -> AccessKey:
            user = await USERS.get(draft, call.account, name)
            keys = [key for _, key in await draft.find(USER_KEY, "") if _is_of(key, call.account, user.name)]
            if len(keys) >= USER_KEYS_MAX:
                raise too_many(f"Cannot exceed quota for AccessKeysPerUser: {USER_KEYS_MAX}")
            new_key = replace(fresh, access_key_id=key_id, user=user.name)
            draft.put(USER_KEY, key_id, new_key)
            draft.put(USERS.kind, user.key, user)  # so that of several at once none is a third
            return new_key

        access_key = await self._resources.write(decide)
        answer = {**_as_structure(access_key), "SecretAccessKey": access_key.secret}
        return {"AccessKey": answer}

    async def list_access_keys(self, call: Call, params: Structure) -> Structure:
        documents = self._resources.documents
        user = await USERS.get(documents, call.account, name_in(call, params))
        keys = [key for key in await documents.find(USER_KEY, "") if _is_of(key, call.account, user.name)]
        return PAGES.of("ListAccessKeys", params, keys, _as_structure, lambda key: key.access_key_id)

    async def update_access_key(self, call: Call, params: Structure) -> Structure:
        active = params["Status"] == _ACTIVE
        await self._change(call, params, lambda draft, key: _put(draft, replace(key, active=active)))
        return {}

    async def delete_access_key(self, call: Call, params: Structure) -> Structure:
        await self._change(call, params, lambda draft, key: draft.remove(USER_KEY, key.access_key_id))
        return {}

    async def get_access_key_last_used(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetAccessKeyLastUsed.html; last use is not recorded."""
        key = await self._resources.documents.get(USER_KEY, params["AccessKeyId"])
        if key is None or key.account != call.account:
            raise _missing(params)
        return {
            "UserName": key.user,
            "AccessKeyLastUsed": {"ServiceName": "N/A", "Region": "N/A"},
        }

    async def _change(
        self, call: Call, params: Structure, change: Callable[[Draft, AccessKey], None]
    ) -> None:
        name, key_id = name_in(call, params), params["AccessKeyId"]

        async def decide(draft: Draft) -> None:
            key = await draft.get(USER_KEY, key_id)
            if key is None or not _is_of(key, call.account, name):
                raise _missing(params)
            change(draft, key)

        await self._resources.write(decide)
        self._keyring.forget(key_id)


def _put(draft: Draft, key: AccessKey) -> None:
    draft.put(USER_KEY, key.access_key_id, key)


def _is_of(key: AccessKey, account: str, name: str) -> bool:
    return key.account == account and key.user.lower() == name.lower()


def _missing(params: Structure) -> Exception:
    return absent(f"The Access Key with id {params['AccessKeyId']} cannot be found.")


def _as_structure(key: AccessKey) -> Structure:
    return {
        "UserName": key.user,
        "AccessKeyId": key.access_key_id,
        "Status": _ACTIVE if key.active else "Inactive",
        "CreateDate": key.created_at,
    }
