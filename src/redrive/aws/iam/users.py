"""Users come, are renamed and go."""

from dataclasses import replace
from typing import ClassVar

from redrive.access.identities import USER_KEY, User
from redrive.aws.iam.entities import GROUPS, USERS, Entity, name_in, shown_group, shown_user
from redrive.aws.iam.entity_operations import EntityOperations
from redrive.aws.iam.errors import PAGES, in_use
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Draft


class UserOperations(EntityOperations[User]):
    """Creates, shows, changes and deletes users."""

    entity: ClassVar[Entity[User]] = USERS

    async def create_user(self, call: Call, params: Structure) -> Structure:
        boundary = params.get("PermissionsBoundary") or ""
        user = User(*self._first_fields(call, params), boundary=boundary)
        await self._create(call, user)
        return {"User": shown_user(user)}

    async def get_user(self, call: Call, params: Structure) -> Structure:
        if not params.get("UserName") and call.principal.keys.get("aws:principaltype") == "Account":
            root = User(call.account, "/", "root", call.account, 0)
            return {"User": {**shown_user(root), "Arn": f"arn:aws:iam::{call.account}:root"}}
        user = await USERS.get(self._resources.documents, call.account, name_in(call, params))
        return {"User": shown_user(user)}

    async def list_users(self, call: Call, params: Structure) -> Structure:
        return await self._list(call, params, lambda user: shown_user(user, whole=False))

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
        groups = [
            await GROUPS.get(documents, call.account, name) for name in user.groups
        ]  # as it joined (recorded)
        return PAGES.of("ListGroupsForUser", params, groups, shown_group)
