"""A client as light as can be, over one connection, so that load costs the server and not us.

It speaks SQS's JSON protocol (`Caller.call`), and whatever else it is given as a request (`Caller.ask`).
"""

import asyncio
from typing import Any

import orjson

Answer = dict[str, Any]


class Lost(Exception):  # noqa: N818 - what happened to the answer
    """The connection ended before the answer: nobody knows whether the call was carried out."""


class Refused(Exception):  # noqa: N818 - the answer
    """The call was answered with an error."""

    def __init__(self, status: int, shape: str, message: str) -> None:
        super().__init__(f"{status} {shape}: {message}")
        self.status = status
        self.shape = shape


class Caller:
    """One connection to a server, one call at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, operation: str, *, path: str = "/", **params: Any) -> Answer:
        """Make one call.

        Raises:
            Lost: No answer came.
            Refused: An error was answered.
        """
        body = orjson.dumps(params)
        target = f"X-Amz-Target: AmazonSQS.{operation}\r\nContent-Type: application/x-amz-json-1.0"
        status, answered = await self.ask("POST", path, body, target)
        answer: Answer = orjson.loads(answered or b"{}")  # some operations answer nothing
        if status != 200:
            raise Refused(
                status, answer.get("__type", "").partition("#")[2], answer.get("message", str(answer))
            )
        return answer

    async def ask(self, method: str, path: str, body: bytes, headers: str) -> tuple[int, bytes]:
        """Send one request, with these lines of headers besides; status and body.

        Raises:
            Lost: No answer came.
        """
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost:{self._port}\r\n{headers}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        try:
            return await self._exchange(head.encode() + body)
        except (OSError, asyncio.IncompleteReadError) as error:
            await self.close()
            raise Lost(f"{method} {path}") from error

    async def close(self) -> None:
        """End the connection, whatever became of it."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        if self._streams is not None and self._streams[0].at_eof():
            await self.close()  # the server ended it while it rested, as it may
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)  # 204 has none
        return int(head[9:12]), await reader.readexactly(length)
