"""Inline policies: those that belong to one user, group or role, and go with it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from redrive.access.identities import PolicyHolder
from redrive.access.policy_document import Form
from redrive.aws.iam.documents import check_document, handed_back
from redrive.aws.iam.entities import Entity
from redrive.aws.iam.errors import PAGES, absent, too_many
from redrive.aws.kit.call import Call, Verb
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Draft, Resources

H = TypeVar("H", bound=PolicyHolder)


class InlinePolicies(Generic[H]):
    """Keeps policies within holders of one kind."""

    def __init__(self, resources: Resources, entity: Entity[H]) -> None:
        self._resources = resources
        self._entity = entity
        word, most = entity.word, entity.inline_chars_max
        self._quota = f"Maximum policy size of {most} bytes exceeded for {word.lower()}"
        self.operations: Mapping[str, Verb] = {
            f"Put{word}Policy": self._put,
            f"Get{word}Policy": self._get,
            f"Delete{word}Policy": self._delete,
            f"List{word}Policies": self._list,
        }

    async def _put(self, call: Call, params: Structure) -> Structure:
        entity, text = self._entity, params["PolicyDocument"]
        check_document(text, Form.IDENTITY, entity.inline_chars_max, self._quota)

        async def decide(draft: Draft) -> None:
            holder = await entity.get(draft, call.account, params[entity.parameter])
            inline = {**holder.inline, params["PolicyName"]: text}
            if sum(len("".join(each.split())) for each in inline.values()) > entity.inline_chars_max:
                raise too_many(f"{self._quota} {holder.name}")
            draft.put(entity.kind, holder.key, replace(holder, inline=inline))

        await self._resources.write(decide)
        return {}

    async def _get(self, call: Call, params: Structure) -> Structure:
        entity, name = self._entity, params["PolicyName"]
        holder = await entity.get(self._resources.documents, call.account, params[entity.parameter])
        if name not in holder.inline:
            raise self._missing(name)
        text = handed_back(holder.inline[name])
        return {entity.parameter: holder.name, "PolicyName": name, "PolicyDocument": text}

    async def _delete(self, call: Call, params: Structure) -> Structure:
        entity, name = self._entity, params["PolicyName"]

        async def decide(draft: Draft) -> None:
            holder = await entity.get(draft, call.account, params[entity.parameter])
            if name not in holder.inline:
                raise self._missing(name)
            left = {each: text for each, text in holder.inline.items() if each != name}
            draft.put(entity.kind, holder.key, replace(holder, inline=left))

        await self._resources.write(decide)
        return {}

    async def _list(self, call: Call, params: Structure) -> Structure:
        entity = self._entity
        holder = await entity.get(self._resources.documents, call.account, params[entity.parameter])
        return PAGES.of(f"List{entity.word}Policies", params, sorted(holder.inline), str, str)

    def _missing(self, name: str) -> AwsError:
        return absent(f"The {self._entity.word.lower()} policy with name {name} cannot be found.")
