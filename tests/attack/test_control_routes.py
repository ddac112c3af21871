"""Redrive's own routes: nothing is shown, changed or removed for a stranger, however the path is written."""

from collections.abc import Iterator
from contextlib import closing
from itertools import product
from typing import Any
from urllib.parse import quote, unquote

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import orjson
import pytest

from redrive.model.http import Request
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Message
from tests.attack.conftest import ACCOUNT
from tests.attack.forging import FORM, REGION, Draft, Key, queues, send, signed
from tests.aws.stage import ACCOUNT as STAGED
from tests.aws.stage import HOST, Stage, on_stage
from tests.aws.stage import signed as signed_by
from tests.services.server import Server, serving

RESET, CLOCK, FAULTS = "/_redrive/reset", "/_redrive/clock", "/_redrive/faults"
TEXTS = "/_aws/sns/sms-messages"
PEEK = "/_aws/sqs/messages"
SHOWN = (
    "/_redrive/queues",
    "/_redrive/topics",
    "/_redrive/endpoints?all=true",
    "/_redrive/dead-letter-queues",
    "/_redrive/dead-letters?queue=kept",
    "/_redrive/dead-letter-tasks?queue=kept",
    "/_redrive/trace?message=00000000-0000-0000-0000-000000000000",
    f"/_aws/sqs/messages/us-east-1/{ACCOUNT}/kept",
    f"/_aws/sqs/messages?QueueUrl=http://a/{ACCOUNT}/kept",
    "/_localstack/init",
    TEXTS,
)
CHANGED = (
    RESET,
    "/_localstack/state/reset",
    CLOCK,
    FAULTS,
    "/_redrive/dead-letters",
    "/_redrive/dead-letter-tasks",
    "/_redrive/endpoints",
    TEXTS,
)
SPELLINGS = (
    "/{}",
    "//{}",
    "/./{}",
    "/x/../{}",
    "/{}/",
    "/{}/.",
    "/{};a=b",
    "/{}%00",
    "/%5Fredrive/../{}",
    "/_redrive/health/../../{}",
    "/_localstack/health/../../{}",
    "http://127.0.0.1/{}",
    "http://elsewhere.example/{}",
)


ALLOWED = (
    *("--auth", "required", "--allow-reset", "--clock", "simulated", "--insecure-test-keys"),
    *("--sms-gateway", "memory"),
)
TEST_KEY: Key = ("test", "test")


@pytest.fixture(scope="module")
def open_to_tests() -> Iterator[Server]:
    """Signatures are required, and everything that a test may want is allowed."""
    with serving("sqlite://:memory:", *ALLOWED) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def anonymous(method: str, target: str, body: bytes = b"", **headers: str) -> Draft:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Draft(method, target, (("Host", "127.0.0.1"), *named), body)


def is_untouched(server: Server, now: float) -> bool:
    return bool(queues(server, TEST_KEY, "kept")) and server.now() == now


@pytest.fixture
def now(open_to_tests: Server) -> float:
    """The simulated moment, with a queue that is to stay."""
    headers = {"X-Amz-Target": "AmazonSQS.CreateQueue", "Content-Type": "application/x-amz-json-1.0"}
    assert send(open_to_tests, signed(open_to_tests, TEST_KEY, b'{"QueueName":"kept"}', headers))[0] == 200
    return open_to_tests.now()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_nothing_is_changed_for_a_stranger(open_to_tests: Server, now: float, spelling: str) -> None:
    body = orjson.dumps({"advance_seconds": 60, "endpoint": "http://a/", "status": 500, "queue": "kept"})
    for path, method in product(CHANGED, ("POST", "PUT", "DELETE", "PATCH", "OPTIONS")):
        status, answer = send(open_to_tests, anonymous(method, spelling.format(path[1:]), body))
        assert 400 <= status < 500, (method, path, answer)
    assert is_untouched(open_to_tests, now)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.usefixtures("now")
def test_nothing_is_shown_to_a_stranger(open_to_tests: Server, spelling: str) -> None:
    for path in SHOWN:
        status, answer = send(open_to_tests, anonymous("GET", spelling.format(path[1:])))
        assert 400 <= status < 500, (path, answer)
        assert b'"kept"' not in answer


@pytest.mark.parametrize(
    "headers",
    [
        {"X-HTTP-Method-Override": "POST"},
        {"X-Original-URL": RESET},
        {"X-Rewrite-URL": RESET},
        {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Authorization": "Basic dGVzdDp0ZXN0"},
        {"Authorization": "Bearer test"},
        {"Cookie": "session=test", "Origin": "http://127.0.0.1"},
        {"Content-Type": FORM},
    ],
    ids=", ".join,
)
def test_no_header_stands_for_a_signature(open_to_tests: Server, now: float, headers: dict[str, str]) -> None:
    for method, path in (
        ("GET", "/_redrive/health"),
        ("POST", RESET),
        ("POST", CLOCK),
        ("GET", "/_redrive/queues"),
    ):
        draft = Draft(
            method, path, (("Host", "127.0.0.1"), *headers.items()), b"{}" if method == "POST" else b""
        )
        status, answer = send(open_to_tests, draft)
        assert (status == 200) == (path == "/_redrive/health"), answer
    assert is_untouched(open_to_tests, now)


@pytest.mark.parametrize("service", ["sqs", "sns", "sts"])
def test_a_signature_for_a_service_opens_no_control_route(
    open_to_tests: Server, now: float, service: str
) -> None:
    """A captured call to a service cannot be turned into one that removes everything."""
    for path in (RESET, CLOCK):
        draft = signed(open_to_tests, TEST_KEY, b'{"advance_seconds": 60}', {}, target=path, service=service)
        assert send(open_to_tests, draft)[0] == 403
    assert is_untouched(open_to_tests, now)


def client(server: Server, service: str) -> Any:
    return boto3.client(
        service,
        region_name=REGION,
        endpoint_url=server.url,
        aws_access_key_id=TEST_KEY[0],
        aws_secret_access_key=TEST_KEY[1],
    )


def test_a_user_neither_reads_nor_deletes_the_texts_of_its_account(open_to_tests: Server) -> None:
    """They hold one-time passwords; any user of the account was let in, whatever its policies said."""
    number = "+4930123456"
    with closing(client(open_to_tests, "iam")) as iam:
        iam.create_user(UserName="reader")
        user = iam.create_access_key(UserName="reader")["AccessKey"]
    with closing(client(open_to_tests, "sns")) as sns:
        sns.publish(PhoneNumber=number, Message="Your code is 123456")

    def ask(key: Key, method: str, service: str = "redrive", target: str = TEXTS) -> tuple[int, bytes]:
        body = b'{"advance_seconds": 1}' if target == CLOCK else b""
        draft = signed(open_to_tests, key, body, {}, method=method, target=target, service=service)
        return send(open_to_tests, draft)

    assert ask(TEST_KEY, "POST", target=CLOCK)[0] == 200
    for method, service in product(("GET", "HEAD", "DELETE"), ("redrive", "sns")):
        assert ask((user["AccessKeyId"], user["SecretAccessKey"]), method, service)[0] == 403
    for method in ("POST", "PUT", "PATCH", "OPTIONS"):
        assert ask(TEST_KEY, method)[0] == 404
    status, answer = ask(TEST_KEY, "GET")
    assert (status, list(orjson.loads(answer)["sms_messages"])) == (200, [number])
    assert ask(TEST_KEY, "DELETE") == (204, b"")
    assert orjson.loads(ask(TEST_KEY, "GET")[1])["sms_messages"] == {}


def test_disabled_control_routes_are_not_found(strict: Server, key: Key) -> None:
    """Not even for a key holder."""
    for path in (RESET, FAULTS, CLOCK):
        draft = signed(strict, key, b"{}", {}, target=path, service="redrive")
        assert send(strict, draft)[0] == 404


@pytest.mark.parametrize("place", ["us-east-1:firehose", "us-east-1%3Afirehose", "us-east-1:x", ""])
def test_nothing_is_shown_of_what_the_server_keeps_for_itself(place: str) -> None:
    """The engine has queues of its own for an account, behind regions that nobody can name."""

    async def play(stage: Stage) -> None:
        name = ResourceName(STAGED, unquote(place) or REGION, "q")
        engine = stage.server.core.engine
        queue = await engine.resources.queues.create(Queue(0, name))
        await engine.messages.send(queue, [Message(engine.runtime.message_id(), "a record")])
        shown = f"/{STAGED}/q"
        in_form = f"QueueUrl={quote(shown, safe='')}&Region={quote(unquote(place) or REGION, safe='')}"
        by_path, by_form = (f"{PEEK}/{place or REGION}{shown}", ""), (PEEK, in_form)
        for path, query in (by_path, by_form):
            request = Request("GET", path, query, {"host": HOST}, b"")
            answer = await stage.send(signed_by(request, "sqs", stage.root))
            expected = (400, False) if place else (200, True)
            assert (answer.status, b"a record" in answer.body) == expected, answer.body

    on_stage(play)
