"""Tags, once for every service: what a request may give, how answers show it, and the three operations on them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.paging import Pages
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

Tags = Mapping[str, str]
TagChange = Callable[[Tags], dict[str, str]]
_RESERVED = "aws:"  # in whatever case: for AWS's own services


class TagRequest(NamedTuple):
    """A call of one of the operations on tags, and the operation's name."""

    call: Call
    params: Structure
    operation: str


class Tagged(Protocol):
    """A service's resources that have tags."""

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the resource that a call names.

        Raises:
            AwsError: There is none, or the caller may not.
        """
        ...

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the resource that a call names; see `tags`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagging:
    """The tags of a service's resources, and the service's words about them."""

    too_many: Callable[[], AwsError]  # Makes the error for more than there may be
    # Makes the error for a key that stands twice; None: the last one counts.
    duplicate: Callable[[], AwsError] | None = None
    # Makes the error for a key that begins with `aws:`; None: it may be given.
    reserved: Callable[[str], AwsError] | None = None
    # Makes the error for a key or value that the published model does not bound; None: it bounds all.
    fault: Callable[[str, str], AwsError | None] = lambda _key, _value: None
    most: int = 50  # Maximum number of tags on a resource
    any_case: bool = False  # Whether keys are the same in any case
    # The members of a tag, where tags are a list of structures; empty: they are an object by key.
    pair: tuple[str, ...] = ("Key", "Value")
    add: str = "TagResource"  # The operation that sets some, and leaves the others
    remove: str = "UntagResource"  # The operation that takes some away
    list: str = "ListTagsForResource"  # The operation that answers with a resource's tags
    tags_parameter: str = "Tags"  # The parameter of `add` that has the tags
    keys: str = "TagKeys"  # The parameter of `remove` that has their keys
    listed: str = "Tags"  # The member of the answer of `list` that has the tags
    omitted: bool = False  # Whether `listed` is left out where a resource has none
    # The service's, where `list` has pages, in order of the keys; None: it has all.
    pages: Pages | None = None

    def read(self, tags: Any, *, of_stack: bool = False) -> dict[str, str]:
        """The tags that a request gives; none where it gives nothing. A stack may give keys that are reserved.

        Raises:
            AwsError: The service's: a key stands twice or is reserved, or there are too many.
        """
        if isinstance(tags, Mapping) or not self.pair:
            return self.checked([*(tags or {}).items()], of_stack=of_stack)
        key, value = self.pair
        pairs = [(tag.get(key) or "", tag.get(value) or "") for tag in tags or ()]
        return self.checked(pairs, of_stack=of_stack)

    def checked(self, pairs: Sequence[tuple[str, str]], *, of_stack: bool = False) -> dict[str, str]:
        """Tags by their keys, with the checks of `read`; `of_stack` allows keys that begin with `aws:`."""
        if self.duplicate and len({self._compared_key(key) for key, _ in pairs}) < len(pairs):
            raise self.duplicate()
        for key, value in pairs:
            if self.reserved and not of_stack and key.lower().startswith(_RESERVED):
                raise self.reserved(key)
            if fault := self.fault(key, value):
                raise fault
        return self._within_limit(dict(pairs))

    def added(self, before: Tags, more: Tags) -> dict[str, str]:
        """Tags with others over them; where case does not matter (`any_case`), a new key replaces another spelling.

        Raises:
            AwsError: That is more than there may be.
        """
        new_keys = {self._compared_key(key) for key in more}
        remaining = {
            key: value
            for key, value in before.items()
            if key in more or self._compared_key(key) not in new_keys
        }
        return self._within_limit({**remaining, **more})

    def without(self, before: Tags, keys: Collection[str]) -> dict[str, str]:
        """Tags without those of some keys."""
        removed = {self._compared_key(key) for key in keys}
        return {key: value for key, value in before.items() if self._compared_key(key) not in removed}

    def as_list(self, tags: Tags) -> Any:
        """Tags, as answers have them."""
        if not self.pair:
            return dict(tags)
        name, text = self.pair
        return [{name: key, text: value} for key, value in tags.items()]

    def operations(self, resources: Tagged) -> dict[str, Verb]:
        """The operations on tags of these resources."""

        async def add(call: Call, params: Structure) -> Structure:
            def added(before: Tags) -> dict[str, str]:
                return self.added(before, self.read(params.get(self.tags_parameter), of_stack=call.of_stack))

            await resources.retag(TagRequest(call, params, self.add), added)
            return {}

        async def remove(call: Call, params: Structure) -> Structure:
            keys: Collection[str] = params[self.keys]
            request = TagRequest(call, params, self.remove)
            await resources.retag(request, lambda before: self.without(before, keys))
            return {}

        async def show(call: Call, params: Structure) -> Structure:
            tags = await resources.tags(TagRequest(call, params, self.list))
            if self.pages is None:
                return {} if self.omitted and not tags else {self.listed: self.as_list(tags)}
            page, answer = self.pages.cut(self.list, params, sorted(tags.items()), lambda tag: tag[0])
            return {self.listed: self.as_list(dict(page)), **answer}

        return {self.add: add, self.remove: remove, self.list: show}

    def _compared_key(self, key: str) -> str:
        return key.lower() if self.any_case else key

    def _within_limit(self, tags: dict[str, str]) -> dict[str, str]:
        if sum(not key.startswith(_RESERVED) for key in tags) > self.most:
            raise self.too_many()
        return tags
