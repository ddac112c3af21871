"""Groups of users."""

from dataclasses import replace
from typing import ClassVar, Final

from redrive.access.identities import Group
from redrive.aws.iam.entities import GROUPS, USERS, Entity, shown_group, shown_user
from redrive.aws.iam.entity_operations import EntityOperations
from redrive.aws.iam.errors import PAGES, absent, in_use, too_many
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Draft

GROUPS_MAX: Final = 10  # of a user


class GroupOperations(EntityOperations[Group]):
    """Creates, shows, changes and deletes groups, and says who is in them."""

    entity: ClassVar[Entity[Group]] = GROUPS

    async def create_group(self, call: Call, params: Structure) -> Structure:
        group = Group(*self._first_fields(call, params))
        await self._create(call, group)
        return {"Group": shown_group(group)}

    async def get_group(self, call: Call, params: Structure) -> Structure:
        group = await self._get(call, params)
        users = await self._resources.documents.find(USERS.kind, f"{call.account}/")
        members = [user for user in users if group.name in user.groups]
        page = PAGES.of(
            "GetGroup", params, members, lambda user: shown_user(user, whole=False), lambda user: user.key
        )
        return {"Group": shown_group(group), **page}

    async def list_groups(self, call: Call, params: Structure) -> Structure:
        return await self._list(call, params, shown_group)

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
            group = await self._in(draft, call, params)
            user = await USERS.get(draft, call.account, params["UserName"])
            if group.name in user.groups:
                return
            if len(user.groups) >= GROUPS_MAX:
                raise too_many(f"Cannot exceed quota for GroupsPerUser: {GROUPS_MAX}")
            draft.put(GROUPS.kind, group.key, group)  # so that nobody deletes it meanwhile
            draft.put(USERS.kind, user.key, replace(user, groups=(*user.groups, group.name)))

        await self._resources.write(decide)
        return {}

    async def remove_user_from_group(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            group = await self._in(draft, call, params)
            user = await USERS.get(draft, call.account, params["UserName"])
            if group.name not in user.groups:
                raise absent(f"User {user.name} is not in group {group.name}.")  # chosen
            left = tuple(name for name in user.groups if name != group.name)
            draft.put(USERS.kind, user.key, replace(user, groups=left))

        await self._resources.write(decide)
        return {}
