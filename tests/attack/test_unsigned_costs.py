"""Nobody without a key can make the server work or remember: a request is refused before its body is looked at."""

import contextlib
import gzip
from collections.abc import Callable
from functools import partial

import pytest

from tests.attack.spending import Wire, resident_bytes, send, times_plain
from tests.services.server import Server

MIB = 1024 * 1024
FORGED = (
    "AWS4-HMAC-SHA256 Credential=AKIAFORGED0000000000/{}/us-east-1/{}/aws4_request,"
    " SignedHeaders=host;x-amz-date, Signature=00"
)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
FOLDED = FORM | {"Content-Encoding": "gzip"}
TIMES_PLAIN_MAX = 8  # a plain request takes 0.1 to 0.2 ms, connection included: 1 ms of processor time


def zipped(text: bytes, headers: dict[str, str] = FOLDED) -> Wire:
    return Wire("POST", "/", headers, gzip.compress(text))


def forged(service: str) -> dict[str, str]:
    return FOLDED | {"Authorization": FORGED.format("20260101", service), "X-Amz-Date": "20260101T000000Z"}


ATTACKS: dict[str, Callable[[], Wire]] = {
    "16 KB of gzip that decompress to 16 MB of fields": partial(zipped, b"+&" * 8_380_000),
    "gzip, escaped letters": partial(zipped, b"%41&" * 4_190_000),
    "gzip, one field of escapes": partial(
        zipped, b"Action=Unsubscribe&SubscriptionArn=" + b"%41" * 5_000_000
    ),
    "gzip, a name of dots": partial(zipped, b"Action=ConfirmSubscription&" + b".a" * 8_000_000),
    "gzip, with a forged signature": lambda: zipped(b"+&" * 8_380_000, forged("sns")),
    "gzip, with a forged signature of the service that takes it": lambda: zipped(
        b"Action=PutMetricData&" + b"a&" * 500_000, forged("monitoring")
    ),
    "peek, gzip": lambda: Wire("POST", "/_aws/sqs/messages", FOLDED, gzip.compress(b"%41&" * 4_190_000)),
    "peek, a form": lambda: Wire("POST", "/_aws/sqs/messages", FORM, b"%41&" * 16_000),
    "an unsigned action with many fields": lambda: Wire(
        "POST", "/", FORM, b"Action=ConfirmSubscription&" + b"%41=%42&" * 8_000
    ),
    "a presigned query of many parameters": lambda: Wire(
        target="/?X-Amz-Algorithm=AWS4-HMAC-SHA256&" + "%41&" * 3_800
    ),
    "an Authorization of many parts": lambda: Wire(
        "POST", "/", {"Authorization": "AWS4-HMAC-SHA256 " + "a=b," * 15_000}, b"Action=ListQueues"
    ),
    "a long date": lambda: Wire(
        "POST",
        "/",
        {"Authorization": FORGED.format("20260101", "sqs"), "Date": "Sun, " + "( " * 20_000},
        b"Action=ListQueues",
    ),
    "a long path of a function": lambda: Wire(target="/2015-03-31/functions/" + "a/" * 7_500),
    "a function asked for with many parameters": lambda: Wire(
        target="/2015-03-31/event-source-mappings/?" + "a&" * 7_500
    ),
    "a host of many labels": lambda: Wire("POST", "/", {"Host": "a." * 30_000}, b"Action=ListQueues"),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_strangers_cost_next_to_nothing(strict: Server, attack: Callable[[], Wire]) -> None:
    wire = attack()
    status, _ = send(strict, wire)
    assert 400 <= status < 500
    assert times_plain(strict, wire) < TIMES_PLAIN_MAX


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {"X-Amz-Target": "AmazonSQS.SendMessage"}),
        ("/", {"X-Amz-Target": "AmazonSQS.SendMessage", "Authorization": "AWS4-HMAC-SHA256 Credential=a"}),
        ("/", FORM),
        (
            "/service/GraniteServiceVersion20100801/operation/PutMetricData",
            {"smithy-protocol": "rpc-v2-cbor"},
        ),
        ("/_aws/sqs/messages", FORM),
        ("/_redrive/dead-letters", {}),
        ("/eventgrid/s/g/t/api/events", {}),
        ("/subscriptions/s/resourceGroups/g", {}),
        ("/tenant/oauth2/v2.0/token", FORM),
    ],
)
def test_oversized_requests_are_refused_by_their_head_alone(
    strict: Server, path: str, headers: dict[str, str]
) -> None:
    """413 by the head alone: of who shows no credential 64 KiB are taken, of others what the service has use for."""
    size = 8 * MIB
    with_length = headers | {"Content-Length": str(size)}
    connection = strict.connect()
    connection.putrequest("POST", path, skip_accept_encoding=True)
    for name, value in with_length.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_requests_of_strangers_leave_no_memory_behind(strict: Server) -> None:
    """125 requests of 15 KB, each of another long ARN, once took 3.6 GB for good."""

    def ask(number: int) -> None:
        arn = b"arn:aws:sns:us-east-1:111111111111:%d" % number + b"x" * 8 * MIB
        send(strict, zipped(b"Action=Unsubscribe&SubscriptionArn=" + arn))
        long = "x" * 15_000
        send(strict, Wire(target=f"/?Action=Unsubscribe&SubscriptionArn=arn:aws:sns:a:1:{number}{long}"))
        send(strict, Wire(target=f"/?Action=ListQueues&X-Amz-Credential={number}{long}%2Fa%2Fb%2Fsqs%2Fc"))
        send(
            strict,
            Wire(target="/?Action=ListQueues", headers={"Authorization": f"Credential={number}{long}"}),
        )

    ask(0)
    before = resident_bytes(strict)
    for number in range(1, 40):
        ask(number)
    assert resident_bytes(strict) - before < 16 * MIB


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nContent-Length: 15000000\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nExpect: a gift\r\nContent-Length: 15000000\r\n\r\n",
        b"POST / HTTP/2.0\r\nHost: a\r\nContent-Length: 15000000\r\n\r\n",
    ],
    ids=["too long", "in pieces", "expecting", "of another version"],
)
def test_a_refused_request_leaves_nothing_behind(strict: Server, head: bytes) -> None:
    """The refusal's traceback held what had been read, 140 KB a connection, until cycles were collected."""

    def ask() -> None:
        connection = strict.connect()
        connection.connect()
        with contextlib.suppress(OSError):
            connection.sock.sendall(head + b" " * MIB)
            connection.sock.recv(4096)
        connection.close()

    for _ in range(20):
        ask()
    before = resident_bytes(strict)
    for _ in range(80):
        ask()
    assert resident_bytes(strict) - before < 4 * MIB
