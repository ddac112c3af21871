"""Instance profiles: tools make them beside roles; nothing here runs machines."""

from dataclasses import replace
from typing import ClassVar

from redrive.access.identities import InstanceProfile, Role, key_of
from redrive.aws.iam.entities import PROFILES, ROLES, Entity, in_path, shown_profile
from redrive.aws.iam.entity_operations import EntityOperations
from redrive.aws.iam.errors import PAGES, absent, in_use, too_many
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Draft


class InstanceProfileOperations(EntityOperations[InstanceProfile]):
    """Creates, shows, changes and deletes instance profiles."""

    entity: ClassVar[Entity[InstanceProfile]] = PROFILES

    async def create_instance_profile(self, call: Call, params: Structure) -> Structure:
        profile = InstanceProfile(*self._first_fields(call, params))
        await self._create(call, profile)
        return {"InstanceProfile": shown_profile(profile, [])}

    async def get_instance_profile(self, call: Call, params: Structure) -> Structure:
        profile = await self._get(call, params)
        return {"InstanceProfile": shown_profile(profile, await self._roles(profile))}

    async def list_instance_profiles(self, call: Call, params: Structure) -> Structure:
        profiles = await self._resources.documents.find(PROFILES.kind, f"{call.account}/")
        return await self._listed("ListInstanceProfiles", list(filter(in_path(params), profiles)), params)

    async def list_instance_profiles_for_role(self, call: Call, params: Structure) -> Structure:
        documents = self._resources.documents
        role = await ROLES.get(documents, call.account, params["RoleName"])
        profiles = await documents.find(PROFILES.kind, f"{call.account}/")
        of_role = [profile for profile in profiles if role.name in profile.roles]
        return await self._listed("ListInstanceProfilesForRole", of_role, params)

    async def delete_instance_profile(self, call: Call, params: Structure) -> Structure:

        async def check_unused(_: Draft, profile: InstanceProfile) -> None:
            if profile.roles:
                raise in_use("Cannot delete entity, must remove roles from instance profile first.")

        return await self._delete(call, params, check_unused)

    async def add_role_to_instance_profile(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            profile = await self._in(draft, call, params)
            role = await ROLES.get(draft, call.account, params["RoleName"])
            if profile.roles:
                raise too_many("Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
            draft.put(ROLES.kind, role.key, role)  # so that nobody deletes it meanwhile
            draft.put(PROFILES.kind, profile.key, replace(profile, roles=(role.name,)))

        await self._resources.write(decide)
        return {}

    async def remove_role_from_instance_profile(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            profile = await self._in(draft, call, params)
            if params["RoleName"] not in profile.roles:
                raise absent(ROLES.missing.format(params["RoleName"]))
            draft.put(PROFILES.kind, profile.key, replace(profile, roles=()))

        await self._resources.write(decide)
        return {}

    async def _roles(self, profile: InstanceProfile) -> list[Role]:
        roles: list[Role] = []
        for name in profile.roles:
            role = await self._resources.documents.get(ROLES.kind, key_of(profile.account, name))
            roles += [] if role is None else [role]
        return roles

    async def _listed(self, operation: str, profiles: list[InstanceProfile], params: Structure) -> Structure:
        roles = {profile.name: await self._roles(profile) for profile in profiles}
        return PAGES.of(
            operation,
            params,
            profiles,
            lambda profile: shown_profile(profile, roles[profile.name], whole=False),
            lambda profile: profile.key,
        )
