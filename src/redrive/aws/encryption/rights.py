"""Rights to keys that KMS confirmed, remembered for as long as a data key serves."""

from typing import Final

from redrive.access.principals import Principal

_REMEMBERED_MAX: Final = 10_000  # rights, some 300 bytes each


class RememberedRights:
    """The rights of principals, told apart by all that KMS's answer depended on.

    A principal is its permissions (whose object lasts until a policy of its own changes, and is another for each
    session) and the condition keys that follow from who it is. Its name will not do: sessions of one name differ.

    Attributes:
        version: Moves when all rights are forgotten: KMS's answer to a question of before does not count any more.
    """

    def __init__(self) -> None:
        self.version = 0
        self._rights: dict[tuple[str, int, object], tuple[Principal, int]] = {}

    def has(self, principal: Principal, about: object, now: int) -> bool:
        """True if a right was confirmed and still counts.

        Args:
            principal: Whose.
            about: The key, and under which encryption context.
            now: ms.
        """
        known = self._rights.get((principal.name, id(principal.permissions), about))
        return known is not None and now < known[1] and _are_alike(known[0], principal)

    def add(self, principal: Principal, about: object, until: int, version: int) -> None:
        """Remember a right, until then (ms), that KMS was asked about at a version."""
        if version != self.version:
            return
        if len(self._rights) >= _REMEMBERED_MAX:
            self._rights.clear()
        self._rights[principal.name, id(principal.permissions), about] = principal, until

    def clear(self) -> None:
        """Forget all rights: a key, an alias or a grant has changed."""
        self.version += 1
        self._rights.clear()


def _are_alike(remembered: Principal, principal: Principal) -> bool:
    return remembered is principal or (
        remembered.permissions is principal.permissions
        and remembered.identities == principal.identities
        and remembered.keys == principal.keys
    )
