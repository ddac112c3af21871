"""SNS in the words tests use, and a webhook that remembers what it was sent."""

import contextlib
import itertools
import os
import queue
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import orjson
from botocore.config import Config
from typing_extensions import override

from tests.contracts.aws.sqs.client import ACCOUNT, REGION, Queue, Sqs
from tests.services.answering import answering
from tests.services.server import Server

OTHER = "210987654321"

_numbers = itertools.count(1)
# No retry hides an error, and what a server checks must reach it.
_CONFIG = Config(
    retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30, parameter_validation=False
)


def new_name(*, fifo: bool = False) -> str:
    """A topic name that no other test has."""
    return f"t{next(_numbers)}-{os.getpid()}{'.fifo' if fifo else ''}"


@dataclass
class Sns:
    """SNS at a server, for one caller."""

    server: Server
    account: str = ACCOUNT
    region: str = REGION

    @cached_property
    def client(self) -> Any:
        return _client(self.server.url, self.account, self.region)

    @cached_property
    def sqs(self) -> Sqs:
        """The same caller at the same server's SQS."""
        return Sqs(self.server, "json", self.account, self.region)

    def elsewhere(self, *, account: str | None = None, region: str | None = None) -> "Sns":
        """The same server, for another caller or in another region."""
        return Sns(self.server, account or self.account, region or self.region)

    def topic(self, *, fifo: bool = False, **attributes: str) -> "Topic":
        given = {"FifoTopic": "true", **attributes} if fifo else attributes
        made = self.client.create_topic(Name=new_name(fifo=fifo), Attributes=given)
        return Topic(self, made["TopicArn"])


@dataclass(frozen=True)
class Topic:
    """One topic, as one caller sees it."""

    sns: Sns
    arn: str

    def call(self, operation: str, **params: Any) -> Any:
        return getattr(self.sns.client, operation)(TopicArn=self.arn, **params)

    def seen_by(self, sns: Sns) -> "Topic":
        return Topic(sns, self.arn)

    def publish(self, text: str = "hello", **params: Any) -> Any:
        return self.call("publish", Message=text, **params)

    def subscribe(self, protocol: str, endpoint: str, **attributes: str) -> str:
        """Subscribe; the subscription's ARN."""
        made = self.call(
            "subscribe",
            Protocol=protocol,
            Endpoint=endpoint,
            Attributes=attributes,
            ReturnSubscriptionArn=True,
        )
        arn: str = made["SubscriptionArn"]
        return arn

    def queue(self, *, fifo: bool = False, **attributes: str) -> Queue:
        """A queue that is subscribed."""
        made = self.sns.sqs.fifo() if fifo else self.sns.sqs.queue()
        self.subscribe("sqs", made.arn, **attributes)
        return made

    def attributes(self) -> dict[str, str]:
        attributes: dict[str, str] = self.call("get_topic_attributes")["Attributes"]
        return attributes

    def set(self, name: str, value: str) -> None:
        self.call("set_topic_attributes", AttributeName=name, AttributeValue=value)


_clients: dict[tuple[str, str, str], Any] = {}


def _client(url: str, account: str, region: str) -> Any:
    """A client takes 10 ms to make, so it is kept."""
    known = (url, account, region)
    if known not in _clients:
        session = boto3.Session(aws_access_key_id=account, aws_secret_access_key="secret", region_name=region)
        _clients[known] = session.client("sns", endpoint_url=url, config=_CONFIG)
    return _clients[known]


# ---- webhooks, and links that are followed -------------------------------------------------------------------------


@dataclass(frozen=True)
class Hit:
    """One request that a webhook got."""

    headers: dict[str, str]
    body: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = orjson.loads(self.body)
        return document


class Webhook:
    """Answers 200 to every POST, and keeps it."""

    def __init__(self) -> None:
        self._hits: queue.Queue[Hit] = queue.Queue()
        hits = self._hits

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                hits.put(Hit({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            @override
            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def next(self) -> Hit:
        """The next request; a test fails that waits for 10 seconds."""
        return self._hits.get(timeout=10)

    @property
    def is_idle(self) -> bool:
        return self._hits.empty()

    @contextlib.contextmanager
    def serving(self) -> Iterator["Webhook"]:
        with answering(self._server):
            yield self


def follow(url: str) -> tuple[int, ET.Element]:
    """Follow a link as a browser does, unsigned; the status and the XML."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    with contextlib.closing(HTTPConnection(parts.hostname, parts.port, timeout=10)) as connection:
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        return answer.status, ET.fromstring(answer.read())


def text_of(root: ET.Element, name: str) -> str | None:
    """The text of the first element of a name, whatever its namespace."""
    return next((one.text for one in root.iter() if one.tag.endswith(f"}}{name}")), None)
