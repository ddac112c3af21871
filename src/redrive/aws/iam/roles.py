"""Roles, with their trust policies; and instance profiles, which tools create beside them."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final

from redrive.access.identities import MAX_SESSION_SECONDS, InstanceProfile, Role, key_of
from redrive.access.policy_document import Form
from redrive.aws.iam.documents import check_document
from redrive.aws.iam.entities import PROFILES, ROLES, Entity, in_path, profile_structure, role_structure
from redrive.aws.iam.entity_operations import EntityOperations
from redrive.aws.iam.errors import PAGES, absent, in_use, too_many
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Draft

_TRUST_CHARS_MAX: Final = 2048
NOT_AT_CREATION: Final = frozenset({"MaxSessionDuration", "RoleLastUsed"})  # recorded
_TRUST_QUOTA: Final = "Cannot exceed quota for ACLSizePerRole"


class RoleOperations(EntityOperations[Role]):
    """Creates, shows, changes and deletes roles."""

    entity: ClassVar[Entity[Role]] = ROLES

    async def create_role(self, call: Call, params: Structure) -> Structure:
        trust = params["AssumeRolePolicyDocument"]
        check_document(trust, Form.TRUST, _TRUST_CHARS_MAX, _TRUST_QUOTA)
        role = Role(
            *self._first_fields(call, params),
            boundary=params.get("PermissionsBoundary") or "",
            trust=trust,
            description=params.get("Description") or "",
            is_described="Description" in params,
            max_session_seconds=params.get("MaxSessionDuration") or MAX_SESSION_SECONDS,
        )
        await self._create(call, role)
        answer = role_structure(role)
        return {"Role": {name: value for name, value in answer.items() if name not in NOT_AT_CREATION}}

    async def get_role(self, call: Call, params: Structure) -> Structure:
        return {"Role": role_structure(await self._get(call, params))}

    async def list_roles(self, call: Call, params: Structure) -> Structure:
        return await self._list(call, params, lambda role: role_structure(role, with_details=False))

    async def update_role(self, call: Call, params: Structure) -> Structure:

        def change(role: Role) -> Role:
            return replace(
                role,
                description=params.get("Description", role.description),
                max_session_seconds=params.get("MaxSessionDuration", role.max_session_seconds),
            )

        await self._change(call, params, change)
        return {}

    async def update_role_description(self, call: Call, params: Structure) -> Structure:
        role = await self._change(
            call, params, lambda before: replace(before, description=params["Description"])
        )
        return {"Role": role_structure(role)}

    async def update_assume_role_policy(self, call: Call, params: Structure) -> Structure:
        trust = params["PolicyDocument"]
        check_document(trust, Form.TRUST, _TRUST_CHARS_MAX, _TRUST_QUOTA)
        await self._change(call, params, lambda role: replace(role, trust=trust))
        return {}

    async def delete_role(self, call: Call, params: Structure) -> Structure:

        async def check_unused(draft: Draft, role: Role) -> None:
            profiles = await draft.find(PROFILES.kind, f"{call.account}/")
            if any(role.name in profile.roles for _, profile in profiles):
                raise in_use("Cannot delete entity, must remove roles from instance profile first.")

        return await self._delete(call, params, check_unused)

    async def _change(self, call: Call, params: Structure, change: Callable[[Role], Role]) -> Role:
        """Change a role; raises AwsError if it does not exist."""

        async def decide(draft: Draft) -> Role:
            role = await self._get_in(draft, call, params)
            return draft.change(ROLES.kind, role.key, role, change)

        return await self._resources.write(decide)


class InstanceProfileOperations(EntityOperations[InstanceProfile]):
    """Creates, shows, changes and deletes instance profiles."""

    entity: ClassVar[Entity[InstanceProfile]] = PROFILES

    async def create_instance_profile(self, call: Call, params: Structure) -> Structure:
        profile = InstanceProfile(*self._first_fields(call, params))
        await self._create(call, profile)
        return {"InstanceProfile": profile_structure(profile, [])}

    async def get_instance_profile(self, call: Call, params: Structure) -> Structure:
        profile = await self._get(call, params)
        return {"InstanceProfile": profile_structure(profile, await self._roles(profile))}

    async def list_instance_profiles(self, call: Call, params: Structure) -> Structure:
        profiles = await self._resources.documents.find(PROFILES.kind, f"{call.account}/")
        return await self._profiles_page(
            "ListInstanceProfiles", list(filter(in_path(params), profiles)), params
        )

    async def list_instance_profiles_for_role(self, call: Call, params: Structure) -> Structure:
        documents = self._resources.documents
        role = await ROLES.get(documents, call.account, params["RoleName"])
        profiles = await documents.find(PROFILES.kind, f"{call.account}/")
        profiles_of_role = [profile for profile in profiles if role.name in profile.roles]
        return await self._profiles_page("ListInstanceProfilesForRole", profiles_of_role, params)

    async def delete_instance_profile(self, call: Call, params: Structure) -> Structure:

        async def check_unused(_: Draft, profile: InstanceProfile) -> None:
            if profile.roles:
                raise in_use("Cannot delete entity, must remove roles from instance profile first.")

        return await self._delete(call, params, check_unused)

    async def add_role_to_instance_profile(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            profile = await self._get_in(draft, call, params)
            role = await ROLES.get(draft, call.account, params["RoleName"])
            if profile.roles:
                raise too_many("Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
            draft.put(ROLES.kind, role.key, role)  # a concurrent deletion conflicts with this write
            draft.put(PROFILES.kind, profile.key, replace(profile, roles=(role.name,)))

        await self._resources.write(decide)
        return {}

    async def remove_role_from_instance_profile(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            profile = await self._get_in(draft, call, params)
            if params["RoleName"] not in profile.roles:
                raise absent(ROLES.absent_text.format(params["RoleName"]))
            draft.put(PROFILES.kind, profile.key, replace(profile, roles=()))

        await self._resources.write(decide)
        return {}

    async def _roles(self, profile: InstanceProfile) -> list[Role]:
        roles: list[Role] = []
        for name in profile.roles:
            role = await self._resources.documents.get(ROLES.kind, key_of(profile.account, name))
            roles += [] if role is None else [role]
        return roles

    async def _profiles_page(
        self, operation: str, profiles: list[InstanceProfile], params: Structure
    ) -> Structure:
        roles = {profile.name: await self._roles(profile) for profile in profiles}
        return PAGES.of(
            operation,
            params,
            profiles,
            lambda profile: profile_structure(profile, roles[profile.name], with_details=False),
            lambda profile: profile.key,
        )
