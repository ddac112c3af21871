"""The bytes that a server's store is made of: SQLite's file and its log, or all rows of PostgreSQL's tables."""

import asyncio
import re
from pathlib import Path
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]  # it ships no types

from tests.services.server import Server

# The key, the encryption context and the beginning of the data key in sealed bytes; see `redrive.access.message_seal`.
_SEAL: Final = re.compile(rb"\0([^\0]+)\0aws:sqs:arn\0[^\0]+\0\0\0(.{60})", re.DOTALL)
_HEX: Final = re.compile(rb"\\x((?:[0-9a-f]{2})+)")


def stored_bytes(server: Server) -> bytes:
    """Everything that the store keeps; what PostgreSQL keeps as bytes is there in hexadecimal."""
    store = server.store
    if not store.startswith("sqlite"):
        return asyncio.run(_rows(store))
    file = Path(store.removeprefix("sqlite:///"))
    return b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))


def holds(server: Server, text: str) -> bool:
    """True if a text stands in the store in clear."""
    stored = stored_bytes(server)
    return text.encode() in stored or text.encode().hex().encode() in stored


def data_keys(server: Server, key: str) -> set[bytes]:
    """The data keys of a key, as they begin in the store, encrypted, of messages that are or were there."""
    stored = stored_bytes(server)
    inside = b"".join(bytes.fromhex(text.decode()) for text in _HEX.findall(stored))
    return {data for name, data in _SEAL.findall(stored + inside) if name == key.encode()}


async def _rows(url: str) -> bytes:
    connection: Any = await asyncpg.connect(url)
    try:
        tables = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        rows = [await connection.fetch(f'SELECT t::text FROM "{name}" t') for (name,) in tables]
        return "\n".join(text for found in rows for (text,) in found).encode()
    finally:
        await connection.close()
