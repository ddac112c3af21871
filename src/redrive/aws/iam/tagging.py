"""Tagging of users, roles, policies and instance profiles."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from redrive.access.identities import Named
from redrive.aws.iam import tags
from redrive.aws.iam.attachments import managed_in
from redrive.aws.iam.entities import POLICIES, Entity
from redrive.aws.iam.errors import PAGES, absent
from redrive.aws.kit.call import Call, Verb
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents, Draft, Resources


class EntityTags:
    """Labels things of one kind."""

    def __init__(self, resources: Resources, entity: Entity[Any]) -> None:
        self._resources = resources
        self._entity = entity
        word = entity.word
        self.operations: Mapping[str, Verb] = {
            f"Tag{word}": self._tag,
            f"Untag{word}": self._untag,
            f"List{word}Tags": self._list,
        }

    async def _tag(self, call: Call, params: Structure) -> Structure:
        more = tags.read(params)
        return await self._change(call, params, lambda before: tags.added(before, more))

    async def _untag(self, call: Call, params: Structure) -> Structure:
        return await self._change(call, params, lambda before: tags.without(before, params["TagKeys"]))

    async def _list(self, call: Call, params: Structure) -> Structure:
        entity = await self._found(self._resources.documents, call, params)
        items = sorted(tags.shown(entity.tags), key=lambda tag: str(tag["Key"]))
        return PAGES.of(
            f"List{self._entity.word}Tags", params, items, lambda tag: tag, lambda tag: str(tag["Key"])
        )

    async def _change(
        self, call: Call, params: Structure, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> Structure:
        async def decide(draft: Draft) -> None:
            entity = await self._found(draft, call, params)
            draft.put(self._entity.kind, entity.key, replace(entity, tags=change(entity.tags)))

        await self._resources.write(decide)
        return {}

    async def _found(self, source: Documents | Draft, call: Call, params: Structure) -> Named:
        if self._entity is not POLICIES:
            entity: Named = await self._entity.get(source, call.account, params[self._entity.parameter])
            return entity
        arn = params["PolicyArn"]
        policy = await managed_in(source, arn)
        if policy is None or policy.account != call.account:
            raise absent(POLICIES.missing.format(arn))
        return policy
