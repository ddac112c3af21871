"""Tags of users, roles, policies and instance profiles."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from redrive.access.identities import Named
from redrive.aws.iam.attachments import managed_in
from redrive.aws.iam.entities import POLICIES, Entity
from redrive.aws.iam.errors import TAGS, absent
from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.tagging import TagChange, TagRequest, Tags
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents, Draft, Resources


class EntityTags:
    """Things of one kind, as `Tagging` labels them."""

    def __init__(self, resources: Resources, entity: Entity[Any]) -> None:
        self._resources = resources
        self._entity = entity

    @property
    def operations(self) -> Mapping[str, Verb]:
        """Those of this kind."""
        word = self._entity.word
        operation_names = replace(TAGS, add=f"Tag{word}", remove=f"Untag{word}", list=f"List{word}Tags")
        return operation_names.operations(self)

    async def tags(self, request: TagRequest) -> Tags:
        """See `Tagged.tags`."""
        return (await self._read(self._resources.documents, request.call, request.params)).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """See `Tagged.retag`."""

        async def decide(draft: Draft) -> None:
            entity = await self._read(draft, request.call, request.params)
            draft.put(self._entity.kind, entity.key, replace(entity, tags=change(entity.tags)))

        await self._resources.write(decide)

    async def _read(self, source: Documents | Draft, call: Call, params: Structure) -> Named:
        if self._entity is not POLICIES:
            entity: Named = await self._entity.get(source, call.account, params[self._entity.parameter])
            return entity
        arn = params["PolicyArn"]
        policy = await managed_in(source, arn)
        if policy is None or policy.account != call.account:
            raise absent(POLICIES.missing.format(arn))
        return policy
