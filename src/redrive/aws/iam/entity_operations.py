"""Operations that users, groups, roles, instance profiles and managed policies have in common, and their tags."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from redrive.access.identities import Named, PolicyHolder
from redrive.aws.iam.attachments import managed_policy_in, set_boundary_in
from redrive.aws.iam.entities import POLICIES, Entity, in_path
from redrive.aws.iam.errors import PAGES, TAGS, absent, in_use, taken
from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.tagging import TagChange, TagRequest, Tags
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.engine.resources import Documents, Draft, Resources

N = TypeVar("N", bound=Named)


class EntityOperations(Generic[N]):
    """Creates, shows, renames and deletes entities of one kind."""

    entity: ClassVar[Entity[Any]]  # The kind

    def __init__(self, resources: Resources, runtime: Runtime) -> None:
        self._resources = resources
        self._runtime = runtime

    def _first_fields(self, call: Call, params: Structure) -> tuple[str, str, str, str, int, dict[str, str]]:
        """The fields of `Named`, from a request to create an entity."""
        name, tags = params[self.entity.parameter], TAGS.read(params.get("Tags"))
        unique_id = self.entity.new_id(self._runtime.rng)
        return call.account, params.get("Path") or "/", name, unique_id, call.now, tags

    async def _create(self, call: Call, new: N) -> None:
        """Store a new entity; raises AwsError if the name is taken, or the policy of its boundary does not exist."""

        async def decide(draft: Draft) -> None:
            await self._check_free_in(draft, new)
            if isinstance(new, PolicyHolder):
                await set_boundary_in(draft, call, before="", after=new.boundary)
            draft.put(self.entity.kind, new.key, new)

        await self._resources.write(decide)

    async def _get(self, call: Call, params: Structure) -> N:
        """The entity that a request names; see `Entity.get`."""
        documents, name = self._resources.documents, params[self.entity.parameter]
        entity: N = await self.entity.get(documents, call.account, name)
        return entity

    async def _get_in(self, draft: Draft, call: Call, params: Structure) -> N:
        """The entity that a request names, as a draft reads it; see `Entity.get`."""
        entity: N = await self.entity.get(draft, call.account, params[self.entity.parameter])
        return entity

    async def _list(self, call: Call, params: Structure, show: Callable[[N], Structure]) -> Structure:
        """A page of the account's entities under a path."""
        entities = await self._resources.documents.find(self.entity.kind, f"{call.account}/")
        entities_in_path = list(filter(in_path(params), entities))
        return PAGES.of(f"List{self.entity.word}s", params, entities_in_path, show, lambda entity: entity.key)

    async def _rename(
        self, call: Call, params: Structure, follow: Callable[[Draft, N, N], Awaitable[None]]
    ) -> Structure:
        """Give an entity another name or path; `follow` changes the documents that refer to it.

        Raises:
            AwsError: There is no such entity, or the new name is taken.
        """

        async def decide(draft: Draft) -> None:
            before = await self._get_in(draft, call, params)
            name = params.get(f"New{self.entity.parameter}") or before.name
            after = replace(before, name=name, path=params.get("NewPath") or before.path)
            if after.key != before.key:
                await self._check_free_in(draft, after)
                draft.remove(self.entity.kind, before.key)
            draft.put(self.entity.kind, after.key, after)
            await follow(draft, before, after)

        await self._resources.write(decide)
        return {}

    async def _delete(
        self, call: Call, params: Structure, check_unused: Callable[[Draft, N], Awaitable[None]]
    ) -> Structure:
        """Delete an entity without policies; `check_unused` raises if something refers to it.

        Raises:
            AwsError: There is no such entity, or `DeleteConflict`.
        """

        async def decide(draft: Draft) -> None:
            entity = await self._get_in(draft, call, params)
            if isinstance(entity, PolicyHolder):
                if entity.attached:
                    raise in_use("Cannot delete entity, must detach all policies first.")
                if entity.inline:
                    raise in_use("Cannot delete entity, must delete policies first.")
                await set_boundary_in(draft, call, before=entity.boundary, after="")
            await check_unused(draft, entity)
            draft.remove(self.entity.kind, entity.key)

        await self._resources.write(decide)
        return {}

    async def _check_free_in(self, draft: Draft, entity: N) -> None:
        """Refuse a name that another entity has."""
        if await draft.get(self.entity.kind, entity.key) is not None:
            raise taken(self.entity.exists_text.format(entity.name))


class EntityTags:
    """Entities of one kind, as `Tagging` labels them."""

    def __init__(self, resources: Resources, entity: Entity[Any]) -> None:
        self._resources = resources
        self._entity = entity

    @property
    def operations(self) -> Mapping[str, Verb]:
        """The operations on the tags of this kind."""
        word = self._entity.word
        operation_names = replace(TAGS, add=f"Tag{word}", remove=f"Untag{word}", list=f"List{word}Tags")
        return operation_names.operations(self)

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the entity that a request names; raises AwsError if there is none."""
        return (await self._read(self._resources.documents, request.call, request.params)).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the entity that a request names; raises AwsError if there is none."""

        async def decide(draft: Draft) -> None:
            entity = await self._read(draft, request.call, request.params)
            draft.put(self._entity.kind, entity.key, replace(entity, tags=change(entity.tags)))

        await self._resources.write(decide)

    async def _read(self, source: Documents | Draft, call: Call, params: Structure) -> Named:
        """The entity that a call names, by name or (a policy) by ARN; raises AwsError."""
        if self._entity is not POLICIES:
            entity: Named = await self._entity.get(source, call.account, params[self._entity.parameter])
            return entity
        arn = params["PolicyArn"]
        policy = await managed_policy_in(source, arn)
        if policy is None or policy.account != call.account:
            raise absent(POLICIES.absent_text.format(arn))
        return policy
