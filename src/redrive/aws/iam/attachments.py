"""Policies of users, groups and roles: attached ones, as permissions or as their boundary, and inline ones."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Generic, TypeVar

from redrive.access.identities import AMAZON, ManagedPolicy, PolicyHolder, aws_managed, key_of
from redrive.access.policy_document import Form
from redrive.aws.iam.documents import check_document, url_encoded
from redrive.aws.iam.entities import POLICIES, Entity
from redrive.aws.iam.errors import PAGES, absent, invalid, too_many
from redrive.aws.kit.call import Call, Verb
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents, Draft, Resources

ATTACHED_MAX: Final = 10
_ARN_PARTS: Final = 6
H = TypeVar("H", bound=PolicyHolder)


class Attachments(Generic[H]):
    """Attaches policies to holders of one kind."""

    def __init__(self, resources: Resources, entity: Entity[H]) -> None:
        self._resources = resources
        self._entity = entity
        word = entity.word
        self.operations: Mapping[str, Verb] = {
            f"Attach{word}Policy": self._attach,
            f"Detach{word}Policy": self._detach,
            f"ListAttached{word}Policies": self._list,
        }

    async def _attach(self, call: Call, params: Structure) -> Structure:
        entity, arn = self._entity, params["PolicyArn"]

        async def decide(draft: Draft) -> None:
            holder = await entity.get(draft, call.account, params[entity.parameter])
            await _check_attachable_in(draft, call, arn)
            if arn in holder.attached:
                return
            if len(holder.attached) >= ATTACHED_MAX:
                raise too_many(f"Cannot exceed quota for PoliciesPer{entity.word}: {ATTACHED_MAX}")
            await count_uses_in(draft, arn, attachments=1)
            draft.put(entity.kind, holder.key, replace(holder, attached=(*holder.attached, arn)))

        await self._resources.write(decide)
        return {}

    async def _detach(self, call: Call, params: Structure) -> Structure:
        entity, arn = self._entity, params["PolicyArn"]

        async def decide(draft: Draft) -> None:
            holder = await entity.get(draft, call.account, params[entity.parameter])
            if arn not in holder.attached:
                raise absent(f"Policy {arn} was not found.")
            await count_uses_in(draft, arn, attachments=-1)
            remaining = tuple(each for each in holder.attached if each != arn)
            draft.put(entity.kind, holder.key, replace(holder, attached=remaining))

        await self._resources.write(decide)
        return {}

    async def _list(self, call: Call, params: Structure) -> Structure:
        entity, prefix = self._entity, params.get("PathPrefix") or "/"
        holder = await entity.get(self._resources.documents, call.account, params[entity.parameter])
        arns = sorted(arn for arn in holder.attached if _path(arn).startswith(prefix))
        return PAGES.of(f"ListAttached{entity.word}Policies", params, arns, attached_structure, str)


class Boundaries(Generic[H]):
    """Sets the permissions boundaries of users, or of roles."""

    def __init__(self, resources: Resources, entity: Entity[H]) -> None:
        self._resources = resources
        self._entity = entity
        word = entity.word
        self.operations: Mapping[str, Verb] = {
            f"Put{word}PermissionsBoundary": self._put,
            f"Delete{word}PermissionsBoundary": self._delete,
        }

    async def _put(self, call: Call, params: Structure) -> Structure:
        return await self._change(call, params, params["PermissionsBoundary"])

    async def _delete(self, call: Call, params: Structure) -> Structure:
        return await self._change(call, params, "")

    async def _change(self, call: Call, params: Structure, boundary: str) -> Structure:
        entity = self._entity

        async def decide(draft: Draft) -> None:
            holder = await entity.get(draft, call.account, params[entity.parameter])
            if not boundary and not holder.boundary:
                raise absent(f"{entity.word} {holder.name} does not have a permissions boundary.")  # chosen
            await set_boundary_in(draft, call, holder.boundary, boundary)
            draft.put(entity.kind, holder.key, replace(holder, boundary=boundary))

        await self._resources.write(decide)
        return {}


def attached_structure(arn: str) -> Structure:
    """An attached policy, as answers have it."""
    return {"PolicyName": arn.rpartition("/")[2], "PolicyArn": arn}


async def _check_attachable_in(draft: Draft, call: Call, arn: str) -> None:
    """Refuse a policy that does not exist, or is another account's.

    Raises:
        AwsError: `NoSuchEntity`, or `ValidationError` for a text that is no ARN.
    """
    policy = await managed_policy_in(draft, arn)
    if policy is None or policy.account not in (call.account, AMAZON):
        raise absent(f"Policy {arn} does not exist or is not attachable.")


async def managed_policy_in(source: Documents | Draft, arn: str) -> ManagedPolicy | None:
    """The managed policy of an ARN; None: there is none. Raises AwsError if the text is no ARN of a policy."""
    *parts, resource = arn.split(":", _ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS - 1 or not resource.startswith("policy/"):
        raise invalid("Invalid ARN:  Could not be parsed!")
    if arn in aws_managed():
        return aws_managed()[arn]
    policy = await source.get(POLICIES.kind, key_of(parts[4], arn.rpartition("/")[2]))
    return policy if policy is not None and policy.arn == arn else None


async def set_boundary_in(draft: Draft, call: Call, before: str, after: str) -> None:
    """Count a use less of the boundary `before`, one more of `after` (ARNs; empty: none); raises AwsError if absent."""
    if after:
        policy = await managed_policy_in(draft, after)
        if policy is None or policy.account not in (call.account, AMAZON):
            raise absent(f"Scope ARN: {after} does not exist or is not attachable.")
        await count_uses_in(draft, after, boundaries=1)
    if before:
        await count_uses_in(draft, before, boundaries=-1)


async def count_uses_in(draft: Draft, arn: str, *, attachments: int = 0, boundaries: int = 0) -> None:
    """Change the number of uses of an account's policy, which may not be deleted while it is used; Amazon's never are."""
    policy = None if arn in aws_managed() else await managed_policy_in(draft, arn)
    if policy is None:
        return
    policy = replace(
        policy, attachments=policy.attachments + attachments, boundaries=policy.boundaries + boundaries
    )
    draft.put(POLICIES.kind, policy.key, policy)


def _path(arn: str) -> str:
    """The path of a policy."""
    return arn.split(":policy", 1)[1].rpartition("/")[0] + "/"


class InlinePolicies(Generic[H]):
    """Puts, gets, lists and deletes the inline policies of holders of one kind."""

    def __init__(self, resources: Resources, entity: Entity[H]) -> None:
        self._resources = resources
        self._entity = entity
        word, chars_max = entity.word, entity.inline_chars_max
        self._quota = f"Maximum policy size of {chars_max} bytes exceeded for {word.lower()}"
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
            chars = sum(len("".join(each.split())) for each in inline.values())  # blanks do not count
            if chars > entity.inline_chars_max:
                raise too_many(f"{self._quota} {holder.name}")
            draft.put(entity.kind, holder.key, replace(holder, inline=inline))

        await self._resources.write(decide)
        return {}

    async def _get(self, call: Call, params: Structure) -> Structure:
        entity, name = self._entity, params["PolicyName"]
        holder = await entity.get(self._resources.documents, call.account, params[entity.parameter])
        if name not in holder.inline:
            raise self._no_policy(name)
        text = url_encoded(holder.inline[name])
        return {entity.parameter: holder.name, "PolicyName": name, "PolicyDocument": text}

    async def _delete(self, call: Call, params: Structure) -> Structure:
        entity, name = self._entity, params["PolicyName"]

        async def decide(draft: Draft) -> None:
            holder = await entity.get(draft, call.account, params[entity.parameter])
            if name not in holder.inline:
                raise self._no_policy(name)
            remaining = {each: text for each, text in holder.inline.items() if each != name}
            draft.put(entity.kind, holder.key, replace(holder, inline=remaining))

        await self._resources.write(decide)
        return {}

    async def _list(self, call: Call, params: Structure) -> Structure:
        entity = self._entity
        holder = await entity.get(self._resources.documents, call.account, params[entity.parameter])
        return PAGES.of(f"List{entity.word}Policies", params, sorted(holder.inline), str, str)

    def _no_policy(self, name: str) -> AwsError:
        return absent(f"The {self._entity.word.lower()} policy with name {name} cannot be found.")
