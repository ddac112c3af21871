"""The clients that people have: boto3 as it is, boto3 on SQS's older Query protocol, and the AWS CLI.

boto3 stopped to speak Query when SQS's published model moved to JSON; older SDKs and API Gateway still do. Here the
model is given its query names back before boto3 reads it, and everything behind it is boto3's own: serialiser,
signer, parser, errors.
"""

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import botocore.session
import orjson
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.loaders import Loader
from typing_extensions import override

from redrive.aws.sqs.query_names import with_query_names
from tests.services.programs import Program
from tests.services.server import Server

Protocol = Literal["json", "query"]
Client = Any  # boto3 makes its clients' classes as it goes

#: The AWS CLI, which finds its settings anew at each start.
AWS: Final = Program(
    "awscli.clidriver:main",
    modules=("awscli.clidriver", "awscli.handlers", "tests.services.aws_cli"),
    command=(str(Path(sys.executable).with_name("aws")),),
    environment={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])},
)
_SECRET: Final = "secret"

# No retry hides an error, and no wait is longer than a test's.
_CONFIG: Final = Config(
    retries={"total_max_attempts": 1},
    connect_timeout=5,
    read_timeout=30,
    max_pool_connections=4,
    parameter_validation=False,  # what a server checks must reach it
)


@functools.cache
def _session(protocol: Protocol) -> botocore.session.Session:
    session = botocore.session.Session()
    if protocol == "query":
        session.register_component("data_loader", _QueryLoader())
    return session


class _QueryLoader(Loader):
    """Loads the published models, SQS's as it was when it described the Query protocol."""

    @override
    def load_service_model(
        self, service_name: str, type_name: str, api_version: str | None = None
    ) -> Mapping[str, Any]:
        model = super().load_service_model(service_name, type_name, api_version)
        return _on_query(model) if (service_name, type_name) == ("sqs", "service-2") else model


def _on_query(model: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = {key: value for key, value in model["metadata"].items() if key != "awsQueryCompatible"}
    metadata = {**kept, "protocol": "query", "protocols": ["query"]}
    operations = {name: _wrapped(name, operation) for name, operation in model["operations"].items()}
    return {
        **model,
        "metadata": metadata,
        "operations": operations,
        "shapes": _located(with_query_names(model["shapes"])),
    }


def _wrapped(name: str, operation: Mapping[str, Any]) -> Mapping[str, Any]:
    if "output" not in operation:
        return operation
    return {**operation, "output": {**operation["output"], "resultWrapper": f"{name}Result"}}


def _located(node: Any) -> Any:
    """The model with query names where botocore's query serialiser looks for them."""
    if isinstance(node, dict):
        return {"locationName" if key == "queryName" else key: _located(item) for key, item in node.items()}
    return [_located(item) for item in node] if isinstance(node, list) else node


def sdk(
    url: str,
    protocol: Protocol = "json",
    *,
    key: tuple[str, str] = ("000000000000", _SECRET),
    region: str = "us-east-1",
) -> Client:
    """A boto3 client of SQS at a server.

    Args:
        url: The server's.
        protocol: What it speaks.
        key: Access key id and secret; with `--auth off` an id of twelve digits is the caller's account.
        region: The caller's.
    """
    session = boto3.Session(
        aws_access_key_id=key[0],
        aws_secret_access_key=key[1],
        region_name=region,
        botocore_session=_session(protocol),
    )
    return session.client("sqs", endpoint_url=url, config=_CONFIG)


# ---- a call that stays open --------------------------------------------------------------------------------------


@dataclass(slots=True)
class OpenCall:
    """A call whose request is on its way to the server, and whose answer nobody has waited for yet."""

    _answer: Future[Any] = field(default_factory=Future)

    @property
    def is_answered(self) -> bool:
        """True if the answer has come."""
        return self._answer.done()

    def answer(self) -> Any:
        """Return the answer of boto3, or raise its error."""
        return self._answer.result(timeout=30)


def begin(server: Server, client: Client, operation: str, **params: Any) -> OpenCall:
    """Send a request and return when its last byte is written, not when it is answered.

    The server's event loop reads its sockets in the order in which they became readable, so what is sent to it
    after this returns is seen after this.

    Args:
        server: Where to.
        client: A client of this call's own: it is made to send by other means.
        operation: The client's method.
        params: The method's arguments.
    """
    sent = threading.Event()
    call = OpenCall()
    client.meta.events.register("before-send.sqs", functools.partial(_send, server, sent))

    def run() -> None:
        try:
            call._answer.set_result(getattr(client, operation)(**params))
        except Exception as error:  # noqa: BLE001 - handed to whoever asks for the answer
            call._answer.set_exception(error)
        finally:
            sent.set()

    threading.Thread(target=run, daemon=True).start()
    assert sent.wait(30)
    return call


def _send(server: Server, sent: threading.Event, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
    headers = {name: _text(value) for name, value in request.headers.items()}
    body: Any = request.body
    with contextlib.closing(server.connect()) as connection:
        connection.request(str(request.method), urlsplit(str(request.url)).path or "/", body, headers)
        sent.set()
        raw = connection.getresponse()
        answered = HTTPHeaders.from_dict(dict(raw.getheaders()))
        return AWSResponse(str(request.url), raw.status, answered, _Raw(raw.read()))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


class _Raw:
    """A body already read, as botocore wants it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> list[bytes]:
        return [self._body]


# ---- the AWS CLI -------------------------------------------------------------------------------------------------


def cli(server: Server, home: Path, service: str = "sqs") -> Callable[..., Any]:
    """The AWS CLI at a server: `aws("list-queues", "--max-results", "2")` returns its JSON output, or None.

    Args:
        server: Where to.
        home: A directory for its settings, so that it reads nobody else's.
        service: The service, as the CLI calls it.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AWS_ACCESS_KEY_ID": "000000000000",
        "AWS_SECRET_ACCESS_KEY": _SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_PAGER": "",
        "AWS_MAX_ATTEMPTS": "1",
    }

    def aws(*arguments: str) -> Any:
        done = AWS.run(["--endpoint-url", server.url, service, *arguments], environment)
        if done.returncode != 0:
            raise CommandFailedError(done.stderr.strip(), done.returncode)
        return orjson.loads(done.stdout) if done.stdout.strip() else None

    return aws


class CommandFailedError(Exception):
    """The CLI's exit status is not 0; the message is its standard error."""

    def __init__(self, message: str, status: int) -> None:
        """Tell what it said, and its exit status."""
        super().__init__(message)
        self.status = status
