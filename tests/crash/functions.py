"""Rounds of events and messages for a function, of a crash of the server or of the function's process, and of proof.

The function writes down each call before it answers. One event in seven fails, always; each event's end leads to a record
in a queue, in the transaction that ends it, so that records tell what became of each.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import boto3
import orjson

from redrive.functions.processes import OWNER, family
from tests.contracts.aws.lambda_.workshop import ROLE, RUNTIME, archive
from tests.crash.checks import PEEK
from tests.crash.journal import Violated
from tests.crash.wire import Caller, Lost
from tests.services.server import Server, new_server

FLAGS: Final = ("--clock", "simulated", "--log-level", "warning", "--functions", "on")
CALLERS: Final = 8
ACCEPTED_MAX: Final = 200  # before the crash
ACCEPTED_AFTER: Final = 40  # where the server lives on
FAILS_EACH: Final = 7
ATTEMPTS: Final = 3  # of an event, by Lambda's schedule, and of a message, by the queue's redrive policy
# The lease of an attempt that was cut off, the function's retries, and three visibility timeouts.
TIME_SECONDS: Final = 70 + 60 + 120 + 3 * 30 + 60

_HANDLER: Final = """
import json, os

def handler(event, context):
    if "Records" not in event:
        note(event["name"], 0)
        if event["forks"] and not os.fork():
            os.setsid()
            os.read(os.pipe()[0], 1)
        if event["fails"]:
            raise ValueError("told to")
        return
    failed = []
    for record in event["Records"]:
        told = json.loads(record["body"])
        note(told["name"], int(record["attributes"]["ApproximateReceiveCount"]))
        if told["fails"]:
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}

def note(name, receives):
    line = json.dumps([name, receives]) + "\\n"
    file = os.open(os.environ["FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)
"""


@dataclass(frozen=True, slots=True)
class Round:
    """One round that kept every promise."""

    seed: int
    accepted: int
    messages: int
    crashed: str
    seconds: float

    @property
    def acknowledged(self) -> int:
        """The calls that were acknowledged, before the crash and after it."""
        return self.accepted


@dataclass
class _Load:
    """The events and messages of a round, by their names.

    Attributes:
        events, messages: Those that fail, and those that do not; a name leads to None while its acceptance is in doubt.
    """

    rng: random.Random
    left: int
    events: dict[str, bool | None] = field(default_factory=dict)
    messages: dict[str, bool | None] = field(default_factory=dict)
    fails: dict[str, bool] = field(default_factory=dict)
    enough: asyncio.Event = field(default_factory=asyncio.Event)


class FunctionRounds:
    """A server, and a function on it that is called and fed, crashed again and again."""

    def __init__(self, server: Server, directory: Path) -> None:
        """Crash this server, which runs; the function's notes are in this directory."""
        self._server = server
        self._file = directory / f"calls-{os.getpid()}"
        self._moment = server.now()
        self._prepare()

    def _client(self, service: str) -> Any:
        keys = {"aws_access_key_id": "000000000000", "aws_secret_access_key": "secret"}
        return boto3.client(service, endpoint_url=self._server.url, region_name="us-east-1", **keys)

    def _prepare(self) -> None:
        """Make the function, its queues and the mapping; they outlive every round."""
        functions, queues = self._client("lambda"), self._client("sqs")
        self._urls = {name: queues.create_queue(QueueName=name)["QueueUrl"] for name in ("records", "dead")}
        policy = {"deadLetterTargetArn": _queue_arn("dead"), "maxReceiveCount": ATTEMPTS}
        attributes = {"RedrivePolicy": json.dumps(policy), "VisibilityTimeout": "30"}
        self._urls["source"] = queues.create_queue(QueueName="source", Attributes=attributes)["QueueUrl"]
        functions.create_function(
            FunctionName="worker",
            Runtime=RUNTIME,
            Role=ROLE,
            Handler="index.handler",
            Code={"ZipFile": archive({"index.py": _HANDLER})},
            Environment={"Variables": {"FILE": str(self._file)}},
        )
        records = {"Destination": _queue_arn("records")}
        functions.put_function_event_invoke_config(
            FunctionName="worker", DestinationConfig={"OnSuccess": records, "OnFailure": records}
        )
        functions.create_event_source_mapping(
            EventSourceArn=_queue_arn("source"),
            FunctionName="worker",
            FunctionResponseTypes=["ReportBatchItemFailures"],
        )

    def run(self, seed: int) -> Round:
        """One round.

        Raises:
            Violated: A promise was broken.
        """
        began, rng = time.monotonic(), random.Random(seed)
        load = _Load(rng, rng.randint(10, ACCEPTED_MAX))
        crash = rng.choice([self.server, self.process])
        asyncio.run(self._loaded(load, seed, crash.__name__))
        if self._server.process.poll() is not None:
            self._server.start()
            self._server.advance(self._moment - self._server.now())
            self._check_no_orphan()
        self._server.advance(TIME_SECONDS)
        self._moment = self._server.now()
        self._check(load)
        accepted = [sent for sent in (*load.events.values(), *load.messages.values()) if sent]
        return Round(seed, len(accepted), len(load.fails), crash.__name__, time.monotonic() - began)

    # ---- the crash -----------------------------------------------------------------------------------------

    def server(self) -> None:
        """kill -9 of the server."""
        self._server.kill()

    def process(self) -> None:
        """kill -9 of every process of the function."""
        _, *processes = family(self._server.process.pid)
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    async def _loaded(self, load: _Load, seed: int, crash: str) -> None:
        working = [asyncio.create_task(self._send(load, f"{seed}-{number}")) for number in range(CALLERS)]
        await load.enough.wait()
        for _ in range(load.rng.randrange(200)):
            await asyncio.sleep(0)
        await asyncio.to_thread(getattr(self, crash))
        load.left = ACCEPTED_AFTER
        await asyncio.gather(*working)

    async def _send(self, load: _Load, name: str) -> None:
        """Send events and messages until enough are there, or the server is gone."""
        caller = self._caller()
        number = 0
        while load.left > 0:
            number += 1
            if not await self._sent(caller, load, f"{name}-{number}"):
                break
            load.left -= 1
            if load.left == 0:
                load.enough.set()
                await asyncio.sleep(0)
        load.enough.set()
        await caller.close()

    async def _sent(self, caller: Caller, load: _Load, name: str) -> bool:
        fails = load.fails[name] = load.rng.randrange(FAILS_EACH) == 0
        told = {"name": name, "fails": fails, "forks": name.endswith("-1")}
        is_event = load.rng.random() < 0.5
        accepted = load.events if is_event else load.messages
        accepted[name] = None
        try:
            if is_event:
                path = "/2015-03-31/functions/worker/invocations"
                status, _ = await caller.ask("POST", path, orjson.dumps(told), "X-Amz-Invocation-Type: Event")
                if status != 202:
                    raise Violated(f"{name} was answered {status}")
            else:
                body = orjson.dumps(told).decode()
                await caller.call("SendMessage", QueueUrl=self._urls["source"], MessageBody=body)
        except Lost:
            return False
        accepted[name] = True
        return True

    # ---- the proof -----------------------------------------------------------------------------------------

    def _check_no_orphan(self) -> None:
        """Check that no process of the function belongs to a server before this one."""
        own = f"{OWNER}={self._server.process.pid}.".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                variables = (process / "environ").read_bytes()
            except OSError:
                continue
            if f"FILE={self._file}".encode() in variables and own not in variables:
                raise Violated(f"process {process.name} outlived its server")

    def _check(self, load: _Load) -> None:
        calls: dict[str, list[int]] = defaultdict(list)
        for line in self._file.read_text().splitlines():
            name, receives = json.loads(line)
            calls[name].append(receives)
        self._file.write_text("")
        self._check_events(load, calls)
        self._check_messages(load, calls)
        queues = self._client("sqs")
        for url in self._urls.values():
            queues.purge_queue(QueueUrl=url)

    def _check_events(self, load: _Load, calls: dict[str, list[int]]) -> None:
        """Each accepted event has one record, and was called as often as that says, but for the crash."""
        records = {}
        # A record may come twice, an event ends once.
        for record in map(orjson.loads, set(self._bodies("records"))):
            name = record["requestPayload"]["name"]
            if name in records:
                raise Violated(f"{name} ended twice: {record}, {records[name]}")
            records[name] = record["requestContext"]
        for name, accepted in load.events.items():
            told = records.pop(name, None)
            if told is None:
                if accepted:
                    raise Violated(f"{name} was accepted and is lost")
                continue
            count, condition = told["approximateInvokeCount"], told["condition"]
            if (condition, count) not in _ends_of(fails=load.fails[name]):
                raise Violated(f"{name} ended as {condition} after {count} attempts")
            if abs(len(calls[name]) - count) > 1:
                raise Violated(f"{name} was called {len(calls[name])} times, and {count} were counted")
        if records:
            raise Violated(f"{records} were never sent")

    def _check_messages(self, load: _Load, calls: dict[str, list[int]]) -> None:
        """Each accepted message was processed, or is a dead letter after as many receives as the policy says."""
        if left := self._bodies("source"):
            raise Violated(f"{left} are still there")
        dead = Counter(orjson.loads(body)["name"] for body in self._bodies("dead"))
        for name, accepted in load.messages.items():
            receives = calls[name]
            if receives != sorted(set(receives)) or len(receives) > ATTEMPTS:
                raise Violated(f"{name} was received as {receives}")
            if accepted and dead[name] != int(load.fails[name]):
                raise Violated(f"{name} is {dead[name]} times a dead letter, after receives {receives}")
            if accepted and (not receives or (load.fails[name] and len(receives) < ATTEMPTS - 1)):
                raise Violated(f"{name} was called as {receives} only")

    def _bodies(self, queue: str) -> Sequence[str]:
        """The messages of a queue, which stay there."""
        return asyncio.run(self._shown(self._urls[queue]))

    async def _shown(self, url: str) -> Sequence[str]:
        caller = self._caller()
        try:
            answer = await caller.call("ReceiveMessage", path=PEEK, QueueUrl=url)
        finally:
            await caller.close()
        return [message["Body"] for message in answer.get("Messages", [])]

    def _caller(self) -> Caller:
        return Caller(int(self._server.url.rpartition(":")[2]))


def _ends_of(*, fails: bool) -> Sequence[tuple[str, int]]:
    """The ends that an event may have; a killed process makes one more attempt of an event that does not fail."""
    return [("RetriesExhausted", ATTEMPTS)] if fails else [("Success", 1), ("Success", 2)]


def _queue_arn(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


def function_server(store: str, directory: Path) -> Server:
    """The server that is to be crashed, not started yet."""
    return new_server(store, *FLAGS, directory=directory)
