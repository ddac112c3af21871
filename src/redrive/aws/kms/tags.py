"""Tags of keys."""

from dataclasses import replace
from typing import Final

from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.kms.access import KeyAccess
from redrive.aws.kms.errors import PAGES, error
from redrive.aws.kms.keyring import KeyRing

TAGS: Final = Tagging(
    too_many=lambda: error("TagException", "Too many tags"),
    duplicate=lambda: error("TagException", "Duplicate tag keys"),
    reserved=lambda _: error("TagException", "Tags beginning with aws: are reserved"),
    pair=("TagKey", "TagValue"),
    list="ListResourceTags",
    pages=replace(PAGES, size=50),
)


class KeyTags:
    """Keys, as `Tagging` labels them."""

    def __init__(self, keyring: KeyRing, access: KeyAccess) -> None:
        self._keyring = keyring
        self._access = access

    async def tags(self, request: TagRequest) -> Tags:
        """See `Tagged.tags`."""
        return (await self._access.managed(request.call, request.params["KeyId"], request.operation)).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """See `Tagged.retag`."""
        key = await self._access.changeable(request.call, request.params["KeyId"], request.operation)
        await self._keyring.change(key.name, lambda current: replace(current, tags=change(current.tags)))
