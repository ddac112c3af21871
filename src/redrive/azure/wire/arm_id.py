"""Resource ids as Azure's resource manager writes them.

    /subscriptions/{guid}/resourceGroups/{group}/providers/{provider}/{type}/{name}[/{type}/{name} …]

Ids keep the spelling they came in and are compared without regard to case: `az group create` sends
`/resourcegroups/` where everybody else sends `/resourceGroups/`.
"""

from typing import NamedTuple, Self


class ArmId(NamedTuple):
    """The id of a subscription, a resource group or a resource."""

    subscription: str  # The Azure subscription's GUID
    group: str = ""  # The resource group; empty for a subscription's id
    provider: str = ""  # `Microsoft.EventGrid`; empty above resources
    parts: tuple[str, ...] = ()  # Types and names in turn: `("domains", "d1", "topics", "t1")`

    @property
    def type(self) -> str:
        """The provider and the types, in lower case: `microsoft.eventgrid/domains/topics`."""
        return self.type_as_spelt.lower()

    @property
    def type_as_spelt(self) -> str:
        """The provider and the types, as they were spelt."""
        return "/".join((self.provider, *self.parts[::2]))

    @property
    def name(self) -> str:
        """The last name, as it was spelt; for a group or a subscription, theirs."""
        return self.parts[-1] if self.parts else self.group or self.subscription

    @property
    def names(self) -> tuple[str, ...]:
        """The names without the types, as they were spelt."""
        return self.parts[1::2]

    @property
    def text(self) -> str:
        """The id as one string."""
        return "".join((f"/subscriptions/{self.subscription}", self._group_text, self._resource_text))

    @property
    def _group_text(self) -> str:
        return f"/resourceGroups/{self.group}" if self.group else ""

    @property
    def _resource_text(self) -> str:
        return "/".join(("", "providers", self.provider, *self.parts)) if self.provider else ""

    @property
    def key(self) -> str:
        """The id as it is compared."""
        return self.text.lower()

    def child(self, kind: str, name: str) -> Self:
        """The id of something within this resource."""
        return self._replace(parts=(*self.parts, kind, name))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read an id; None: it is not one (a type without a name, an unknown beginning)."""
        parts = [part for part in text.split("/") if part]
        if len(parts) < 2 or parts[0].lower() != "subscriptions":  # noqa: PLR2004 - the word and the GUID
            return None
        arm_id, rest = cls(parts[1]), parts[2:]
        if len(rest) >= 2 and rest[0].lower() == "resourcegroups":  # noqa: PLR2004 - the word and the name
            arm_id, rest = arm_id._replace(group=rest[1]), rest[2:]
        if not rest:
            return arm_id
        if rest[0].lower() != "providers" or len(rest) < 4 or len(rest) % 2:  # noqa: PLR2004 - a type, a name
            return None
        return arm_id._replace(provider=rest[1], parts=tuple(rest[2:]))
