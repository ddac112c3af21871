"""Tags of keys."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kms.access import KeyAccess
from redrive.aws.kms.errors import PAGES, error
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.records import KmsKey
from redrive.aws.wire.shapes import Structure

TAGS_MAX: Final = 50


def read_tags(listed: Sequence[Structure] | None) -> dict[str, str]:
    """Tags as a request lists them.

    Raises:
        AwsError: `TagException`.
    """
    tags: dict[str, str] = {}
    for tag in listed or ():
        name: str = tag["TagKey"]
        if name in tags:
            raise error("TagException", "Duplicate tag keys")
        if name.lower().startswith("aws:"):
            raise error("TagException", "Tags beginning with aws: are reserved")
        tags[name] = tag["TagValue"]
    check_number(tags)
    return tags


def check_number(tags: Mapping[str, str]) -> None:
    """Refuse too many.

    Raises:
        AwsError: `TagException`.
    """
    if len(tags) > TAGS_MAX:
        raise error("TagException", "Too many tags")


class KeyTags:
    """Labels keys."""

    def __init__(self, keyring: KeyRing, access: KeyAccess) -> None:
        self._keyring = keyring
        self._access = access

    async def tag_resource(self, call: Call, params: Structure) -> Structure:
        key = await self._access.changeable(call, params["KeyId"], "TagResource")
        given = read_tags(params["Tags"])

        def tagged(current: KmsKey) -> KmsKey:
            tags = {**current.tags, **given}
            check_number(tags)
            return replace(current, tags=tags)

        await self._keyring.change(key.name, tagged)
        return {}

    async def untag_resource(self, call: Call, params: Structure) -> Structure:
        key = await self._access.changeable(call, params["KeyId"], "UntagResource")
        taken = set(params["TagKeys"])
        await self._keyring.change(
            key.name,
            lambda current: replace(
                current, tags={name: value for name, value in current.tags.items() if name not in taken}
            ),
        )
        return {}

    async def list_resource_tags(self, call: Call, params: Structure) -> Structure:
        key = await self._access.managed(call, params["KeyId"], "ListResourceTags")
        tags = sorted(key.tags.items())
        page, answer = PAGES.cut("ListResourceTags", params, tags, lambda tag: tag[0], size=50)
        return {"Tags": [{"TagKey": name, "TagValue": value} for name, value in page], **answer}
