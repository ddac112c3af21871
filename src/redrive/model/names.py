"""Names of resources: topics, queues and whatever else an account has in a region."""

from typing import NamedTuple, Self


class ResourceName(NamedTuple):
    """Account, region and name: names are unique within an account's region."""

    account: str
    region: str
    name: str

    @property
    def key(self) -> str:
        """The name as one string, as the store keeps it; no part may hold a slash."""
        return f"{self.account}/{self.region}/{self.name}"

    @property
    def private(self) -> bool:
        """True if it stands for one destination alone, where no caller can name it: behind its region is a colon."""
        return ":" in self.region

    @classmethod
    def from_key(cls, key: str) -> Self:
        """Read what `key` wrote."""
        return cls(*key.split("/"))
