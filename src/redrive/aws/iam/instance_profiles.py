"""Instance profiles: tools make them beside roles; nothing here runs machines."""

from dataclasses import replace

from redrive.access.identities import InstanceProfile, Role, key_of
from redrive.aws.iam.entities import PROFILES, ROLES, in_path, shown_profile
from redrive.aws.iam.errors import PAGES, TAGS, absent, in_use, taken, too_many
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.engine.resources import Draft, Resources


class InstanceProfileOperations:
    """Creates, shows, changes and deletes instance profiles."""

    def __init__(self, resources: Resources, runtime: Runtime) -> None:
        self._resources = resources
        self._runtime = runtime

    async def create_instance_profile(self, call: Call, params: Structure) -> Structure:
        instance_profile = InstanceProfile(
            call.account,
            params.get("Path") or "/",
            params["InstanceProfileName"],
            PROFILES.new_id(self._runtime.chance),
            call.now,
            TAGS.read(params.get("Tags")),
        )

        async def decide(draft: Draft) -> None:
            if await draft.get(PROFILES.kind, instance_profile.key) is not None:
                raise taken(PROFILES.standing.format(instance_profile.name))
            draft.put(PROFILES.kind, instance_profile.key, instance_profile)

        await self._resources.write(decide)
        return {"InstanceProfile": shown_profile(instance_profile, [])}

    async def get_instance_profile(self, call: Call, params: Structure) -> Structure:
        profile = await PROFILES.get(self._resources.documents, call.account, params["InstanceProfileName"])
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

        async def decide(draft: Draft) -> None:
            profile = await PROFILES.get(draft, call.account, params["InstanceProfileName"])
            if profile.roles:
                raise in_use("Cannot delete entity, must remove roles from instance profile first.")
            draft.remove(PROFILES.kind, profile.key)

        await self._resources.write(decide)
        return {}

    async def add_role_to_instance_profile(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            profile = await PROFILES.get(draft, call.account, params["InstanceProfileName"])
            role = await ROLES.get(draft, call.account, params["RoleName"])
            if profile.roles:
                raise too_many("Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
            draft.put(ROLES.kind, role.key, role)  # so that nobody deletes it meanwhile
            draft.put(PROFILES.kind, profile.key, replace(profile, roles=(role.name,)))

        await self._resources.write(decide)
        return {}

    async def remove_role_from_instance_profile(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            profile = await PROFILES.get(draft, call.account, params["InstanceProfileName"])
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
