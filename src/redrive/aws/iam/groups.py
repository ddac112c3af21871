"""Groups of users."""

from dataclasses import replace
from typing import Final

from redrive.access.identities import Group
from redrive.aws.iam.entities import GROUPS, USERS, in_path, shown_group, shown_user
from redrive.aws.iam.errors import PAGES, absent, in_use, taken, too_many
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.engine.resources import Draft, Resources

GROUPS_MAX: Final = 10  # of a user


class GroupOperations:
    """Creates, shows, changes and deletes groups, and says who is in them."""

    def __init__(self, resources: Resources, runtime: Runtime) -> None:
        self._resources = resources
        self._runtime = runtime

    async def create_group(self, call: Call, params: Structure) -> Structure:
        path, unique_id = params.get("Path") or "/", GROUPS.new_id(self._runtime.chance)
        group = Group(call.account, path, params["GroupName"], unique_id, call.now)

        async def decide(draft: Draft) -> None:
            if await draft.get(GROUPS.kind, group.key) is not None:
                raise taken(GROUPS.standing.format(group.name))
            draft.put(GROUPS.kind, group.key, group)

        await self._resources.write(decide)
        return {"Group": shown_group(group)}

    async def get_group(self, call: Call, params: Structure) -> Structure:
        documents = self._resources.documents
        group = await GROUPS.get(documents, call.account, params["GroupName"])
        users = await documents.find(USERS.kind, f"{call.account}/")
        members = [user for user in users if group.name in user.groups]
        page = PAGES.of(
            "GetGroup", params, members, lambda user: shown_user(user, whole=False), lambda user: user.key
        )
        return {"Group": shown_group(group), **page}

    async def list_groups(self, call: Call, params: Structure) -> Structure:
        groups = await self._resources.documents.find(GROUPS.kind, f"{call.account}/")
        groups_in_path = list(filter(in_path(params), groups))
        return PAGES.of("ListGroups", params, groups_in_path, shown_group, lambda group: group.key)

    async def update_group(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateGroup.html; its users stay in it."""

        async def decide(draft: Draft) -> None:
            group = await GROUPS.get(draft, call.account, params["GroupName"])
            renamed = replace(
                group,
                name=params.get("NewGroupName") or group.name,
                path=params.get("NewPath") or group.path,
            )
            if renamed.key != group.key:
                if await draft.get(GROUPS.kind, renamed.key) is not None:
                    raise taken(GROUPS.standing.format(renamed.name))
                draft.remove(GROUPS.kind, group.key)
            draft.put(GROUPS.kind, renamed.key, renamed)
            for key, user in await draft.find(USERS.kind, f"{call.account}/"):
                if group.name in user.groups:
                    names = (renamed.name if name == group.name else name for name in user.groups)
                    draft.put(USERS.kind, key, replace(user, groups=tuple(names)))

        await self._resources.write(decide)
        return {}

    async def delete_group(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            group = await GROUPS.get(draft, call.account, params["GroupName"])
            if group.attached:
                raise in_use("Cannot delete entity, must detach all policies first.")
            if group.inline:
                raise in_use("Cannot delete entity, must delete policies first.")
            users = await draft.find(USERS.kind, f"{call.account}/")
            if any(group.name in user.groups for _, user in users):
                raise in_use("Cannot delete entity, must remove users from group first.")
            draft.remove(GROUPS.kind, group.key)

        await self._resources.write(decide)
        return {}

    async def add_user_to_group(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            group = await GROUPS.get(draft, call.account, params["GroupName"])
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
            group = await GROUPS.get(draft, call.account, params["GroupName"])
            user = await USERS.get(draft, call.account, params["UserName"])
            if group.name not in user.groups:
                raise absent(f"User {user.name} is not in group {group.name}.")  # chosen
            left = tuple(name for name in user.groups if name != group.name)
            draft.put(USERS.kind, user.key, replace(user, groups=left))

        await self._resources.write(decide)
        return {}
