"""Groups and streams as documents: found, listed, made and removed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from redrive.aws.logs.errors import error, no_such_group, no_such_stream
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Documents, Draft
from redrive.model.errors import Conflict
from redrive.model.log import LOG_GROUP, LOG_STREAM, LogEvent, LogGroup, LogStream, stream_key
from redrive.model.names import ResourceName

GROUP: Final = DocumentKind.of(LOG_GROUP, LogGroup)
STREAM: Final = DocumentKind.of(LOG_STREAM, LogStream)

_REMOVED_AT_ONCE = 100

Settle = Callable[[], Awaitable[None]]  # lets what this node has logged arrive in the store
StreamNames = Mapping[int, str]  # by the streams' numbers
WriteDown = Callable[[Sequence[LogEvent], StreamNames], Awaitable[None]]  # writes events down


class LogPlaces:
    """The groups and streams of all accounts and regions."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents

    async def group(self, name: ResourceName) -> LogGroup:
        """The group of that name; raises AwsError (`ResourceNotFoundException`)."""
        group = await self.documents.get(GROUP, name.key)
        if group is None:
            raise no_such_group()
        return group

    async def stored_group(self, name: ResourceName) -> LogGroup:
        """As `group`, of the store: another node may have made it again, with another number.

        Raises:
            AwsError: `ResourceNotFoundException`.
        """
        group = await self.documents.get_stored(GROUP, name.key)
        if group is None:
            raise no_such_group()
        return group

    async def stream(self, group: LogGroup, name: str) -> LogStream:
        """A group's stream of that name; raises AwsError (`ResourceNotFoundException`)."""
        stream = await self.documents.get(STREAM, stream_key(group.id, name))
        if stream is None:
            raise no_such_stream()
        return stream

    async def streams(
        self, group: LogGroup, prefix: str = "", after: str = "", limit: int | None = None
    ) -> list[LogStream]:
        """A group's streams whose name begins so, in order of the names, beginning after the name `after`."""
        behind = stream_key(group.id, after) if after else ""
        return await self.documents.find(STREAM, stream_key(group.id, prefix), behind, limit)

    async def add_group(self, group: LogGroup) -> None:
        """Make a group; raises AwsError (`ResourceAlreadyExistsException`)."""
        try:
            await self.documents.create(GROUP, group.name.key, group)
        except Conflict:
            raise error("ResourceAlreadyExistsException", "The specified log group already exists") from None

    async def add_stream(self, name: ResourceName, stream_name: str, number: int, now: int) -> None:
        """Make a stream in the group of a name.

        Raises:
            AwsError: `ResourceNotFoundException`, `ResourceAlreadyExistsException`.
        """

        async def decide(draft: Draft) -> None:
            group = await draft.get(GROUP, name.key)
            if group is None:
                raise no_such_group()
            stream = LogStream(number, group.id, stream_name, now)
            if await draft.get(STREAM, stream.key) is not None:
                raise error("ResourceAlreadyExistsException", "The specified log stream already exists")
            draft.put(STREAM, stream.key, stream)

        await self.documents.transact(decide)

    async def remove_group(self, group: LogGroup) -> None:
        """Take a group away with its streams; its events, which nobody can reach any more, are swept."""
        await self.documents.remove(GROUP, group.name.key)
        while streams := await self.streams(group, limit=_REMOVED_AT_ONCE):
            await asyncio.gather(*(self.remove_stream(stream) for stream in streams))

    async def remove_stream(self, stream: LogStream) -> None:
        """Take a stream away, but for its events."""
        await self.documents.remove(STREAM, stream.key)
