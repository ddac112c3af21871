"""Users come, are renamed and go."""

from dataclasses import replace

from redrive.access.identities import USER_KEY, User, key_of
from redrive.aws.iam.attachments import count_in, set_boundary_in
from redrive.aws.iam.entities import GROUPS, USERS, in_path, name_in, shown_group, shown_user
from redrive.aws.iam.errors import PAGES, TAGS, in_use, taken
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.engine.resources import Draft, Resources


class UserOperations:
    """Creates, shows, changes and deletes users."""

    def __init__(self, resources: Resources, runtime: Runtime) -> None:
        self._resources = resources
        self._runtime = runtime

    async def create_user(self, call: Call, params: Structure) -> Structure:
        user = User(
            call.account,
            params.get("Path") or "/",
            params["UserName"],
            USERS.new_id(self._runtime.chance),
            call.now,
            TAGS.read(params.get("Tags")),
            boundary=params.get("PermissionsBoundary") or "",
        )

        async def decide(draft: Draft) -> None:
            await _check_free_in(draft, user)
            await set_boundary_in(draft, call, "", user.boundary)
            draft.put(USERS.kind, user.key, user)

        await self._resources.write(decide)
        return {"User": shown_user(user)}

    async def get_user(self, call: Call, params: Structure) -> Structure:
        if not params.get("UserName") and "aws:username" not in call.principal.keys:
            root = User(call.account, "/", "root", call.account, 0)
            return {"User": {**shown_user(root), "Arn": f"arn:aws:iam::{call.account}:root"}}
        user = await USERS.get(self._resources.documents, call.account, name_in(call, params))
        return {"User": shown_user(user)}

    async def list_users(self, call: Call, params: Structure) -> Structure:
        users = await self._resources.documents.find(USERS.kind, f"{call.account}/")
        users_in_path = list(filter(in_path(params), users))
        return PAGES.of(
            "ListUsers",
            params,
            users_in_path,
            lambda user: shown_user(user, whole=False),
            lambda user: user.key,
        )

    async def update_user(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateUser.html; keys go along with a name."""

        async def decide(draft: Draft) -> None:
            user = await USERS.get(draft, call.account, params["UserName"])
            renamed = replace(
                user,
                name=params.get("NewUserName") or user.name,
                path=params.get("NewPath") or user.path,
            )
            if renamed.key != user.key:
                await _check_free_in(draft, renamed)
                draft.remove(USERS.kind, user.key)
            draft.put(USERS.kind, renamed.key, renamed)
            for key_id, key in await draft.find(USER_KEY, ""):
                if (key.account, key.user) == (user.account, user.name) and renamed.name != user.name:
                    draft.put(USER_KEY, key_id, replace(key, user=renamed.name))

        await self._resources.write(decide)
        return {}

    async def delete_user(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            user = await USERS.get(draft, call.account, params["UserName"])
            if user.attached:
                raise in_use("Cannot delete entity, must detach all policies first.")
            if user.inline:
                raise in_use("Cannot delete entity, must delete policies first.")
            if user.groups:
                raise in_use("Cannot delete entity, must remove referenced objects first.")
            for _, key in await draft.find(USER_KEY, ""):
                if (key.account, key.user) == (user.account, user.name):
                    raise in_use("Cannot delete entity, must delete access keys first.")
            if user.boundary:
                await count_in(draft, user.boundary, boundaries=-1)
            draft.remove(USERS.kind, user.key)

        await self._resources.write(decide)
        return {}

    async def list_groups_for_user(self, call: Call, params: Structure) -> Structure:
        documents = self._resources.documents
        user = await USERS.get(documents, call.account, params["UserName"])
        groups = [
            await GROUPS.get(documents, call.account, name) for name in user.groups
        ]  # as it joined (recorded)
        return PAGES.of("ListGroupsForUser", params, groups, shown_group)


async def _check_free_in(draft: Draft, user: User) -> None:
    """Refuse a name that a user has."""
    if await draft.get(USERS.kind, key_of(user.account, user.name)) is not None:
        raise taken(USERS.standing.format(user.name))
