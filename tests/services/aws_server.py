"""A server that invokes functions and fills streams as Amazon's do: signed calls alone, and answers as a test says."""

import contextlib
import threading
from base64 import b64decode
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import orjson
from typing_extensions import override

from redrive.aws.wire.signatures.sigv4 import SignatureRefused
from tests.services.answering import answering
from tests.services.aws_calls import USERINFO, AwsCall, put_answer

REQUEST_ID = "6f6a3c60-5d2c-4f37-a0ad-1d8ef6a8d1b7"


class Said(NamedTuple):
    """An answer: the name of an error, or of none; in a batch, the places of records that are not taken."""

    status: int = 0
    code: str = ""
    message: str = ""
    failed: tuple[int, ...] = ()


TAKES = Said()


class AwsServer:
    """Functions and streams; each call is answered by the next of `answers`, then as if all were well."""

    def __init__(self) -> None:
        self.answers: deque[Said] = deque()
        self._calls: list[AwsCall] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are two writes: 40 ms each time

            def do_POST(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(int(headers["content-length"]))
                status, answer, beside = outer._answer(AwsCall(self.path, headers, body))
                self.send_response(status)
                for name, value in {**beside, "Content-Length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            @override
            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://{USERINFO}127.0.0.1:{self._server.server_port}"

    def taken(self) -> list[AwsCall]:
        """The calls since the last look; a test's clock stands still meanwhile, so that none is missed."""
        with self._lock:
            calls, self._calls = self._calls, []
        return calls

    @contextlib.contextmanager
    def serving(self) -> Iterator["AwsServer"]:
        with answering(self._server):
            yield self

    def _answer(self, call: AwsCall) -> tuple[int, bytes, dict[str, str]]:
        beside = {"x-amzn-RequestId": REQUEST_ID}
        try:
            service = call.proved().service
        except SignatureRefused as refusal:
            return (
                403,
                orjson.dumps({"message": str(refusal)}),
                {"x-amzn-ErrorType": "InvalidSignatureException"},
            )
        with self._lock:
            self._calls.append(call)
            said = self.answers.popleft() if self.answers else TAKES
        if said.code and service == "lambda":
            error = {"Type": "User", "message": said.message}
            return said.status, orjson.dumps(error), beside | {"x-amzn-ErrorType": said.code}
        if said.code:
            error = {"__type": f"com.amazonaws.firehose#{said.code}", "message": said.message}
            return said.status, orjson.dumps(error), beside
        if service == "lambda":
            return 202, b"", beside
        return 200, put_answer(len(call.records), *said.failed), beside


def messages(calls: list[AwsCall]) -> list[str]:
    """The messages that calls brought: to functions, or to streams one by one."""
    found = []
    for call in calls:
        if "x-amz-target" in call.headers:
            found += [orjson.loads(b64decode(one["Data"]))["Message"] for one in _entries(call)]
        else:
            found += [record["Sns"]["Message"] for record in call.document["Records"]]
    return found


def _entries(call: AwsCall) -> list[dict[str, str]]:
    document = call.document
    return document["Records"] if call.operation == "PutRecordBatch" else [document["Record"]]
