"""The port of S3: where the contents of objects are kept."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol


class BlobKeeper(Protocol):
    """Keeps blobs by names that this server chose."""

    async def put(self, path: str, content: bytes, content_type: str = "") -> str:
        """Write a blob, on disk when this returns."""
        ...

    async def read(self, path: str, first: int, length: int) -> bytes:
        """Some bytes of a blob.

        Raises:
            NotFound: It is not there (any more).
        """
        ...

    async def stream(self, path: str, first: int, length: int) -> AsyncGenerator[bytes]:
        """As `read`, in pieces; the blob may be removed meanwhile.

        Raises:
            NotFound: It is not there (any more).
        """
        ...

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove blobs; those that are not there are no error."""
        ...
