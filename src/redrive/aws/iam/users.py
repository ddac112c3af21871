"""Users with their access keys, two each at most, and groups of users."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final

from redrive.access.identities import USER_KEY, USER_KEYS_MAX, Group, User
from redrive.access.keys import KEY_USE, AccessKey, Keyring, KeyUse, new_access_key
from redrive.access.secret import lasting_key_id
from redrive.access.signing_pair import SigningPair
from redrive.aws.iam.entities import GROUPS, USERS, Entity, group_structure, name_in, user_structure
from redrive.aws.iam.entity_operations import EntityOperations
from redrive.aws.iam.errors import PAGES, absent, in_use, too_many
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.engine.resources import Draft, Resources

GROUPS_MAX: Final = 10  # of a user
_ACTIVE: Final = "Active"


class UserOperations(EntityOperations[User]):
    """Creates, shows, changes and deletes users."""

    entity: ClassVar[Entity[User]] = USERS

    def __init__(self, resources: Resources, runtime: Runtime, pair: SigningPair) -> None:
        super().__init__(resources, runtime)
        self._pair = pair  # its age is that of the accounts, which exist as long as the store

    async def create_user(self, call: Call, params: Structure) -> Structure:
        boundary = params.get("PermissionsBoundary") or ""
        user = User(*self._first_fields(call, params), boundary=boundary)
        await self._create(call, user)
        return {"User": user_structure(user)}

    async def get_user(self, call: Call, params: Structure) -> Structure:
        if not params.get("UserName") and call.principal.keys.get("aws:principaltype") == "Account":
            root = User(call.account, "/", "root", call.account, self._pair.made_at)
            return {"User": {**user_structure(root), "Arn": f"arn:aws:iam::{call.account}:root"}}
        user = await USERS.get(self._resources.documents, call.account, name_in(call, params))
        return {"User": user_structure(user)}

    async def list_users(self, call: Call, params: Structure) -> Structure:
        return await self._list(call, params, lambda user: user_structure(user, with_details=False))

    async def update_user(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateUser.html; keys go along with a name."""

        async def follow(draft: Draft, before: User, after: User) -> None:
            for key_id, key in await draft.find(USER_KEY, ""):
                if (key.account, key.user) == (before.account, before.name) and after.name != before.name:
                    draft.put(USER_KEY, key_id, replace(key, user=after.name))

        return await self._rename(call, params, follow)

    async def delete_user(self, call: Call, params: Structure) -> Structure:

        async def check_unused(draft: Draft, user: User) -> None:
            if user.groups:
                raise in_use("Cannot delete entity, must remove referenced objects first.")
            for _, key in await draft.find(USER_KEY, ""):
                if (key.account, key.user) == (user.account, user.name):
                    raise in_use("Cannot delete entity, must delete access keys first.")

        return await self._delete(call, params, check_unused)

    async def list_groups_for_user(self, call: Call, params: Structure) -> Structure:
        user, documents = await self._get(call, params), self._resources.documents
        # In the order in which the user joined (recorded).
        groups = [await GROUPS.get(documents, call.account, name) for name in user.groups]
        return PAGES.of("ListGroupsForUser", params, groups, group_structure)


class GroupOperations(EntityOperations[Group]):
    """Creates, shows, changes and deletes groups, and changes their members."""

    entity: ClassVar[Entity[Group]] = GROUPS

    async def create_group(self, call: Call, params: Structure) -> Structure:
        group = Group(*self._first_fields(call, params))
        await self._create(call, group)
        return {"Group": group_structure(group)}

    async def get_group(self, call: Call, params: Structure) -> Structure:
        group = await self._get(call, params)
        users = await self._resources.documents.find(USERS.kind, f"{call.account}/")
        members = [user for user in users if group.name in user.groups]
        page = PAGES.of(
            "GetGroup",
            params,
            members,
            lambda user: user_structure(user, with_details=False),
            lambda user: user.key,
        )
        return {"Group": group_structure(group), **page}

    async def list_groups(self, call: Call, params: Structure) -> Structure:
        return await self._list(call, params, group_structure)

    async def update_group(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateGroup.html; its users stay in it."""

        async def follow(draft: Draft, before: Group, after: Group) -> None:
            for key, user in await draft.find(USERS.kind, f"{call.account}/"):
                if before.name in user.groups:
                    names = (after.name if name == before.name else name for name in user.groups)
                    draft.put(USERS.kind, key, replace(user, groups=tuple(names)))

        return await self._rename(call, params, follow)

    async def delete_group(self, call: Call, params: Structure) -> Structure:

        async def check_unused(draft: Draft, group: Group) -> None:
            users = await draft.find(USERS.kind, f"{call.account}/")
            if any(group.name in user.groups for _, user in users):
                raise in_use("Cannot delete entity, must remove users from group first.")

        return await self._delete(call, params, check_unused)

    async def add_user_to_group(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            group = await self._get_in(draft, call, params)
            user = await USERS.get(draft, call.account, params["UserName"])
            if group.name in user.groups:
                return
            if len(user.groups) >= GROUPS_MAX:
                raise too_many(f"Cannot exceed quota for GroupsPerUser: {GROUPS_MAX}")
            draft.put(GROUPS.kind, group.key, group)  # a concurrent deletion conflicts with this write
            draft.put(USERS.kind, user.key, replace(user, groups=(*user.groups, group.name)))

        await self._resources.write(decide)
        return {}

    async def remove_user_from_group(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            group = await self._get_in(draft, call, params)
            user = await USERS.get(draft, call.account, params["UserName"])
            if group.name not in user.groups:
                raise absent(f"User {user.name} is not in group {group.name}.")  # chosen
            remaining = tuple(name for name in user.groups if name != group.name)
            draft.put(USERS.kind, user.key, replace(user, groups=remaining))

        await self._resources.write(decide)
        return {}


class AccessKeyOperations:
    """Creates, shows, changes and deletes access keys."""

    def __init__(self, resources: Resources, runtime: Runtime, keyring: Keyring) -> None:
        self._resources = resources
        self._runtime = runtime
        self._keyring = keyring

    async def create_access_key(self, call: Call, params: Structure) -> Structure:
        name, rng = name_in(call, params), self._runtime.rng
        random_key = new_access_key(call.account, call.now, rng)
        # Its id holds the account, as Amazon's do: AWS tools read it there.
        template = replace(random_key, access_key_id=lasting_key_id(call.account, rng))

        async def decide(draft: Draft) -> AccessKey:
            user = await USERS.get(draft, call.account, name)
            keys = [key for _, key in await draft.find(USER_KEY, "") if _is_of(key, call.account, user.name)]
            if len(keys) >= USER_KEYS_MAX:
                raise too_many(f"Cannot exceed quota for AccessKeysPerUser: {USER_KEYS_MAX}")
            new_key = replace(template, user=user.name)
            draft.put(USER_KEY, new_key.access_key_id, new_key)
            draft.put(USERS.kind, user.key, user)  # concurrent creations conflict: none is a third key
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
        await self._change(
            call,
            params,
            lambda draft, key: draft.put(USER_KEY, key.access_key_id, replace(key, active=active)),
        )
        return {}

    async def delete_access_key(self, call: Call, params: Structure) -> Structure:
        await self._change(call, params, _remove_key)
        self._keyring.uses.forget(params["AccessKeyId"])
        return {}

    async def get_access_key_last_used(self, call: Call, params: Structure) -> Structure:
        key = await self._resources.documents.get(USER_KEY, params["AccessKeyId"])
        if key is None or key.account != call.account:
            raise _no_key(params)
        use = (await self._keyring.uses.of([key.access_key_id])).get(key.access_key_id)
        return {"UserName": key.user, "AccessKeyLastUsed": _use_as_structure(use)}

    async def _change(
        self, call: Call, params: Structure, change: Callable[[Draft, AccessKey], None]
    ) -> None:
        """Let `change` write or remove an access key of a user; raises AwsError if the user has no such key."""
        name, key_id = name_in(call, params), params["AccessKeyId"]

        async def decide(draft: Draft) -> None:
            key = await draft.get(USER_KEY, key_id)
            if key is None or not _is_of(key, call.account, name):
                raise _no_key(params)
            change(draft, key)

        await self._resources.write(decide)
        self._keyring.forget(key_id)


def _remove_key(draft: Draft, key: AccessKey) -> None:
    for kind in (USER_KEY, KEY_USE):
        draft.remove(kind, key.access_key_id)


def _is_of(key: AccessKey, account: str, name: str) -> bool:
    return key.account == account and key.user.lower() == name.lower()


def _no_key(params: Structure) -> Exception:
    return absent(f"The Access Key with id {params['AccessKeyId']} cannot be found.")


def _use_as_structure(use: KeyUse | None) -> Structure:
    """https://docs.aws.amazon.com/IAM/latest/APIReference/API_AccessKeyLastUsed.html; without a use it has no date."""
    if use is None:
        return {"ServiceName": "N/A", "Region": "N/A"}
    return {"LastUsedDate": use.at, "ServiceName": use.service, "Region": use.region or "N/A"}


def _as_structure(key: AccessKey) -> Structure:
    return {
        "UserName": key.user,
        "AccessKeyId": key.access_key_id,
        "Status": _ACTIVE if key.active else "Inactive",
        "CreateDate": key.created_at,
    }
