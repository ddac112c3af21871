"""Roles: who may assume them, and for how long."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from redrive.access.identities import MAX_SESSION_SECONDS, Role
from redrive.access.policy_document import Form
from redrive.aws.iam.attachments import count_in, set_boundary_in
from redrive.aws.iam.documents import check_document
from redrive.aws.iam.entities import PROFILES, ROLES, in_path, shown_role
from redrive.aws.iam.errors import PAGES, TAGS, in_use, taken
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.engine.resources import Draft, Resources

_TRUST_CHARS_MAX: Final = 2048
_NOT_AT_CREATION: Final = frozenset({"MaxSessionDuration", "RoleLastUsed"})  # recorded
_TRUST_QUOTA: Final = "Cannot exceed quota for ACLSizePerRole"


class RoleOperations:
    """Creates, shows, changes and deletes roles."""

    def __init__(self, resources: Resources, runtime: Runtime) -> None:
        self._resources = resources
        self._runtime = runtime

    async def create_role(self, call: Call, params: Structure) -> Structure:
        trust = params["AssumeRolePolicyDocument"]
        check_document(trust, Form.TRUST, _TRUST_CHARS_MAX, _TRUST_QUOTA)
        role = Role(
            call.account,
            params.get("Path") or "/",
            params["RoleName"],
            ROLES.new_id(self._runtime.chance),
            call.now,
            TAGS.read(params.get("Tags")),
            boundary=params.get("PermissionsBoundary") or "",
            trust=trust,
            description=params.get("Description") or "",
            max_session_seconds=params.get("MaxSessionDuration") or MAX_SESSION_SECONDS,
        )

        async def decide(draft: Draft) -> None:
            if await draft.get(ROLES.kind, role.key) is not None:
                raise taken(ROLES.standing.format(role.name))
            await set_boundary_in(draft, call, "", role.boundary)
            draft.put(ROLES.kind, role.key, role)

        await self._resources.write(decide)
        answer = shown_role(role)
        return {"Role": {name: value for name, value in answer.items() if name not in _NOT_AT_CREATION}}

    async def get_role(self, call: Call, params: Structure) -> Structure:
        role = await ROLES.get(self._resources.documents, call.account, params["RoleName"])
        return {"Role": shown_role(role)}

    async def list_roles(self, call: Call, params: Structure) -> Structure:
        roles = await self._resources.documents.find(ROLES.kind, f"{call.account}/")
        roles_in_path = list(filter(in_path(params), roles))
        return PAGES.of(
            "ListRoles",
            params,
            roles_in_path,
            lambda role: shown_role(role, whole=False),
            lambda role: role.key,
        )

    async def update_role(self, call: Call, params: Structure) -> Structure:

        def changed(role: Role) -> Role:
            return replace(
                role,
                description=params.get("Description", role.description),
                max_session_seconds=params.get("MaxSessionDuration", role.max_session_seconds),
            )

        await self._change(call, params, changed)
        return {}

    async def update_role_description(self, call: Call, params: Structure) -> Structure:
        role = await self._change(
            call, params, lambda before: replace(before, description=params["Description"])
        )
        return {"Role": shown_role(role)}

    async def update_assume_role_policy(self, call: Call, params: Structure) -> Structure:
        trust = params["PolicyDocument"]
        check_document(trust, Form.TRUST, _TRUST_CHARS_MAX, _TRUST_QUOTA)
        await self._change(call, params, lambda role: replace(role, trust=trust))
        return {}

    async def delete_role(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            role = await ROLES.get(draft, call.account, params["RoleName"])
            if role.attached:
                raise in_use("Cannot delete entity, must detach all policies first.")
            if role.inline:
                raise in_use("Cannot delete entity, must delete policies first.")
            profiles = await draft.find(PROFILES.kind, f"{call.account}/")
            if any(role.name in profile.roles for _, profile in profiles):
                raise in_use("Cannot delete entity, must remove roles from instance profile first.")
            if role.boundary:
                await count_in(draft, role.boundary, boundaries=-1)
            draft.remove(ROLES.kind, role.key)

        await self._resources.write(decide)
        return {}

    async def _change(self, call: Call, params: Structure, change: Callable[[Role], Role]) -> Role:
        async def decide(draft: Draft) -> Role:
            role = await ROLES.get(draft, call.account, params["RoleName"])
            return draft.change(ROLES.kind, role.key, role, change)

        return await self._resources.write(decide)
