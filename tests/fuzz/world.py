"""A whole server but for its sockets, in memory, with something in every corner to be disturbed."""

import random
from collections.abc import Awaitable
from typing import Any

import orjson

from redrive.access.secret import InstallationSecret
from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.gateway.gateway import Gateway
from redrive.aws.sqs.facade import Sqs
from redrive.aws.sqs.peek import PATH as PEEK_PATH
from redrive.aws.sqs.peek import Peek
from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.model.http import Request, Response
from tests.fuzz.watched import Watched

BASE = "http://localhost/000000000000"
STANDARD, FIFO, DEAD = f"{BASE}/standard", f"{BASE}/first.fifo", f"{BASE}/dead"
DEAD_ARN = "arn:aws:sqs:us-east-1:000000000000:dead"
HANDLE, FIFO_HANDLE, TASK = "<handle>", "<fifo handle>", "<task>"  # stand for what only the server knows


class World(Watched):
    """SQS on a store in memory, on a clock that stands."""

    def __init__(self) -> None:
        super().__init__()
        runtime = Runtime(self._clock, random.Random(7), "node")
        self.engine = Engine(self._store, runtime)
        trust_all = TrustAll("us-east-1")
        self._gateway = Gateway(
            runtime, trust_all, {"sqs": Sqs(self.engine, InstallationSecret(b"s" * 32), {})}, None
        )
        self._peek = Peek(self.engine, trust_all, {})

    async def open(self) -> None:
        """Make queues with messages waiting, in flight, delayed and dead, and a task that moves them."""
        await self.engine.open()
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
        await self.settle()

    def handle(self, request: Request) -> Awaitable[Response]:
        """See `Watched.handle`."""
        handler = self._peek if request.path.startswith(PEEK_PATH) else self._gateway
        return handler.answer(request)

    async def _call(self, operation: str, **params: Any) -> Any:
        headers = {"x-amz-target": f"AmazonSQS.{operation}", "host": "localhost"}
        response = await self._gateway.answer(Request("POST", "/", "", headers, orjson.dumps(params)))
        assert response.status == 200, response.body
        return orjson.loads(response.body or b"{}")
