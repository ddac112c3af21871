"""A whole server but for its sockets, in memory, with something in every corner to be disturbed."""

import asyncio
import random
from typing import Any

import orjson

from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.protocols.aws.authentication import Believing
from redrive.protocols.aws.gateway import Gateway
from redrive.protocols.aws.sqs.facade import Sqs
from redrive.protocols.aws.sqs.peek import PATH as PEEK_PATH
from redrive.protocols.aws.sqs.peek import Peek
from redrive.protocols.http import Request, Response
from redrive.runtime.simulated import SimulatedClock
from redrive.stores.sqlite.store import SqliteStore

BASE = "http://localhost/000000000000"
STANDARD, FIFO, DEAD = f"{BASE}/standard", f"{BASE}/first.fifo", f"{BASE}/dead"
DEAD_ARN = "arn:aws:sqs:us-east-1:000000000000:dead"
HANDLE, FIFO_HANDLE, TASK = "<handle>", "<fifo handle>", "<task>"  # stand for what only the server knows

_WAIT_SECONDS = 20  # the longest a receiver may wait
_TURNS = 64  # of the event loop that a call which waits for nothing may take
_NOT_COMPARED = frozenset({"counters", "sqlite_schema"})  # a number may be taken in vain


class World:
    """SQS on a store in memory, on a clock that stands."""

    def __init__(self) -> None:
        self._clock = SimulatedClock()
        self._store = SqliteStore(None)
        runtime = Runtime(self._clock, random.Random(7), "node")
        self._engine = Engine(self._store, runtime)
        believing = Believing("us-east-1")
        self._gateway = Gateway(runtime, believing, {"sqs": Sqs(self._engine, {})}, None)
        self._peek = Peek(self._engine, believing, {})
        self.known: dict[str, str] = {}

    async def open(self) -> None:
        """Make queues with messages waiting, in flight, delayed and dead, and a task that moves them."""
        await self._engine.open()
        policy = orjson.dumps({"deadLetterTargetArn": DEAD_ARN, "maxReceiveCount": 1}).decode()
        await self._call("CreateQueue", QueueName="dead")
        await self._call("CreateQueue", QueueName="standard", Attributes={"RedrivePolicy": policy})
        await self._call("CreateQueue", QueueName="first.fifo", Attributes={"FifoQueue": "true"})
        for body in ("dies", "dies too"):
            await self._call("SendMessage", QueueUrl=STANDARD, MessageBody=body)
        for _ in range(2):
            await self._call("ReceiveMessage", QueueUrl=STANDARD, MaxNumberOfMessages=10, VisibilityTimeout=0)
        for delay in (0, 0, 60):
            await self._call("SendMessage", QueueUrl=STANDARD, MessageBody="b", DelaySeconds=delay)
        for number in ("1", "2", "3"):
            params = {"MessageGroupId": "g", "MessageDeduplicationId": number}
            await self._call("SendMessage", QueueUrl=FIFO, MessageBody=number, **params)
        for name, url in ((HANDLE, STANDARD), (FIFO_HANDLE, FIFO)):
            answer = await self._call("ReceiveMessage", QueueUrl=url)
            self.known[name] = answer["Messages"][0]["ReceiptHandle"]
        started = await self._call("StartMessageMoveTask", SourceArn=DEAD_ARN, MaxNumberOfMessagesPerSecond=1)
        self.known[TASK] = started["TaskHandle"]
        await self._settle()

    async def close(self) -> None:
        """Stop what is under way."""
        await self._engine.close()

    async def answer(self, request: Request) -> Response:
        """Answer a request; one that waits is let wait its time."""
        handler = self._peek if request.path.startswith(PEEK_PATH) else self._gateway
        answering = asyncio.ensure_future(handler.answer(request))
        for _ in range(_TURNS):
            if answering.done():
                break
            await asyncio.sleep(0)
        else:
            await self._clock.advance(_WAIT_SECONDS * 1000, self._engine.quiet)
        response = await answering
        await self._settle()
        return response

    def everything(self) -> dict[str, list[Any]]:
        """All that is stored, table by table."""
        connection = self._store._connection
        named = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        tables = {str(row[0]) for row in named} - _NOT_COMPARED
        return {
            table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
            for table in sorted(tables)
        }

    async def _settle(self) -> None:
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        await self._engine.quiet()

    async def _call(self, operation: str, **params: Any) -> Any:
        headers = {"x-amz-target": f"AmazonSQS.{operation}", "host": "localhost"}
        response = await self._gateway.answer(Request("POST", "/", "", headers, orjson.dumps(params)))
        assert response.status == 200, response.body
        return orjson.loads(response.body or b"{}")
