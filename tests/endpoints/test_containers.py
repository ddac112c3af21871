"""The containers of the blob store, where several callers act at once."""

import asyncio
from pathlib import Path

from redrive.endpoints.containers import BlobContainers


def test_a_container_that_several_remove_at_once_is_gone_for_all(tmp_path: Path) -> None:
    async def remove() -> list[bool]:
        containers = BlobContainers(str(tmp_path))
        await containers.make("letters", "dead")
        for number in range(500):
            (tmp_path / f"letters/dead/{number}").touch()
        return await asyncio.gather(*(containers.remove("letters", "dead") for _ in range(4)))

    assert any(asyncio.run(remove()))
    assert not (tmp_path / "letters/dead").exists()
