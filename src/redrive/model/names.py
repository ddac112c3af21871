"""Names of resources (account, region, name) and the text form of ids."""

import hashlib
from typing import NamedTuple, Self


def bytes_of(text: str) -> int:
    """The length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def id_text(message_id: bytes) -> str:
    """A message id as UUIDs are written; `uuid.UUID` says the same ten times as slowly."""
    return f"{message_id[:4].hex()}-{message_id[4:10].hex('-', 2)}-{message_id[10:].hex()}"


def number_key(queue_id: int) -> str:
    """The key of the record of a queue's id, or of a backlog's."""
    return f"{queue_id:020d}"


def content_deduplication_id(body: str) -> str:
    """The id a body stands for: SHA-256 of the body alone, never of its attributes (SQS FIFO document)."""
    return hashlib.sha256(body.encode()).hexdigest()


class ResourceName(NamedTuple):
    """Account, region and name: names are unique within an account's region."""

    account: str
    region: str
    name: str = ""  # Empty: the account's region itself

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
