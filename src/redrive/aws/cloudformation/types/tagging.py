"""Tags of resources that are there: each service lists, sets and takes them away in words of its own."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from redrive.aws.cloudformation.types.resource_type import Ask, ResourceSpec

_STACK: Final = "aws:cloudformation:stack-name"
_STACK_ID: Final = "aws:cloudformation:stack-id"
_LOGICAL_ID: Final = "aws:cloudformation:logical-id"


def own_tags(spec: ResourceSpec) -> dict[str, str]:
    """The tags of what a stack made, by which it finds again what it made before it was cut short."""
    by_stack = {_STACK: spec.stack.name, _STACK_ID: spec.stack_id, _LOGICAL_ID: spec.logical_id}
    return {**spec.all_tags(), **by_stack}


def is_own(spec: ResourceSpec, tags: Mapping[str, str] | None) -> bool:
    """True if tags are those of what the stack made."""
    known = tags or {}
    return (known.get(_STACK_ID), known.get(_LOGICAL_ID)) == (spec.stack_id, spec.logical_id)


class TagCalls(NamedTuple):
    """A service's operations on the tags of a resource, and its spelling of them."""

    service: str  # Its endpoint prefix
    list: str  # The operation that answers with a resource's tags
    add: str  # The operation that sets some, and leaves the others
    remove: str  # The operation that takes some away
    tags: str = "Tags"  # The parameter of `add` that has the tags
    keys: str = "TagKeys"  # The parameter of `remove` that has their keys
    listed: str = ""  # The member of the answer of `list` that has the tags; empty: it is called as `tags` is
    # The members of a tag, where tags are a list of structures; empty: they are an object by key.
    pair: tuple[str, ...] = ("Key", "Value")

    async def set(self, ask: Ask, spec: Mapping[str, str], **identifiers: str) -> None:
        """Give a resource these tags, and no others; it is named as the service's operations name it."""
        current_tags = (await ask(self.service, self.list, **identifiers)).get(self.listed or self.tags) or {}
        had = self._read(current_tags)
        if new := {key: value for key, value in spec.items() if had.get(key) != value}:
            await ask(self.service, self.add, **identifiers, **{self.tags: self.written(new)})
        if removed_keys := sorted(had.keys() - spec.keys()):
            await ask(self.service, self.remove, **identifiers, **{self.keys: removed_keys})

    def written(self, tags: Mapping[str, str]) -> Any:
        """Tags as the service takes them."""
        if not self.pair:
            return dict(tags)
        key, value = self.pair
        return [{key: name, value: text} for name, text in tags.items()]

    def _read(self, tags: Any) -> dict[str, str]:
        if not self.pair:
            return dict(tags)
        key, value = self.pair
        return {tag[key]: tag[value] for tag in tags}
