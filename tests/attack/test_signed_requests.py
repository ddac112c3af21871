"""Requests that nobody signed so: none is carried out, whatever was changed and wherever it was put.

What is refused and in which words is the business of `../protocols/sigv4`; here a running server is asked for a queue
by every way round it that was tried, and has none afterwards.
"""

import base64
import gzip
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

import pytest

from tests.attack.forging import FORM, JSON, Draft, Key, presigned, queues, send, signed
from tests.services.server import Server

STOLEN = b'{"QueueName":"stolen"}'
CREATE = {"X-Amz-Target": "AmazonSQS.CreateQueue", "Content-Type": JSON}
ACTION = "Action=CreateQueue&QueueName=stolen&Version=2012-11-05"
LIST = {"Action": "ListQueues", "Version": "2012-11-05"}
MAKE = {"Action": "CreateQueue", "QueueName": "stolen", "Version": "2012-11-05"}
MINUTE = 60
STRANGER = ("AKIASTRANGER00000000", "a" * 40)


class Stage:
    """A server, and somebody's key of it."""

    def __init__(self, server: Server, key: Key) -> None:
        self.server = server
        self.key = key

    def create(self, key: Key | None = None, **how: float | str) -> Draft:
        """CreateQueue, as its signer means it."""
        return signed(self.server, key or self.key, STOLEN, CREATE, **how)  # type: ignore[arg-type]  # as named

    def list(self) -> Draft:
        """ListQueues, as its signer means it."""
        return signed(self.server, self.key)

    def link(self, params: dict[str, str] = LIST, **how: int) -> Draft:
        """A presigned URL."""
        return presigned(self.server, self.key, params, **how)  # type: ignore[arg-type]  # as named


def with_token(draft: Draft) -> Draft:
    return draft.adding(X_Amz_Security_Token="token")


SIGNERS: dict[str, Callable[[Stage], Draft]] = {
    "nobody": lambda s: s.create().without("authorization"),
    "nobody, by a form": lambda s: Draft(
        "POST", "/", (("Host", "a"), ("Content-Type", FORM)), ACTION.encode()
    ),
    "nobody, by a URL": lambda s: Draft("GET", f"/?{ACTION}", (("Host", "a"),)),
    "a key that nobody has": lambda s: s.create(STRANGER),
    "a key without its secret": lambda s: s.create((s.key[0], "x")),
    "another key's secret": lambda s: s.create((STRANGER[0], s.key[1])),
    "the secret in small letters": lambda s: s.create((s.key[0], s.key[1].lower())),
    "the id in small letters": lambda s: s.create((s.key[0].lower(), s.key[1])),
    "the id for a secret": lambda s: s.create((s.key[0], s.key[0])),
    "an account for a key": lambda s: s.create(("111111111111", "111111111111")),
    "the test key": lambda s: s.create(("test", "test")),
    "another algorithm": lambda s: s.create().authorized("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1"),
    "no algorithm": lambda s: s.create().authorized("AWS4-HMAC-SHA256 ", ""),
    "an algorithm in small letters": lambda s: s.create().authorized("AWS4-HMAC-SHA256", "aws4-hmac-sha256"),
    "a version before": lambda s: s.create().having(Authorization=f"AWS {s.key[0]}:c2lnbmF0dXJl"),
    "a bearer": lambda s: s.create().having(Authorization=f"Bearer {s.key[1]}"),
    "a password": lambda s: s.create().having(
        Authorization="Basic " + base64.b64encode(":".join(s.key).encode()).decode()
    ),
    "no signature": lambda s: s.create().having(
        Authorization=s.create().header("authorization").partition("Signature=")[0] + "Signature="
    ),
    "a signature that ends early": lambda s: s.create().having(
        Authorization=s.create().header("authorization")[:-1]
    ),
    "a signature with more behind it": lambda s: s.create().having(
        Authorization=s.create().header("authorization") + "0"
    ),
    "letters beyond ASCII": lambda s: s.create().having(
        Authorization=s.create().header("authorization")[:-1] + "\u00e9"
    ),
    "a day before": lambda s: s.create(seconds=-24 * 60 * MINUTE),
    "a quarter of an hour before": lambda s: s.create(seconds=-15 * MINUTE - 3),
    "a quarter of an hour to come": lambda s: s.create(seconds=15 * MINUTE + 30),
    "another service": lambda s: s.create(service="sns"),
    "a service that is not": lambda s: s.create(service=""),
    "another scope's region": lambda s: s.create().authorized("/us-east-1/", "/eu-central-1/"),
    "another scope's service": lambda s: s.create(service="sns").authorized("/sns/", "/sqs/"),
    "another scope's end": lambda s: s.create().authorized("aws4_request", "aws4_requests"),
    "a scope of six": lambda s: s.create().authorized("/us-east-1/", "/us-east-1/us-east-1/"),
}

CHANGES: dict[str, Callable[[Stage], Draft]] = {
    "the body": lambda s: replace(signed(s.server, s.key, b'{"QueueName":"modest"}', CREATE), body=STOLEN),
    "a body where there was none": lambda s: replace(signed(s.server, s.key, b"", CREATE), body=STOLEN),
    "the operation": lambda s: replace(s.list(), body=STOLEN).having(X_Amz_Target=CREATE["X-Amz-Target"]),
    "the operation, not signed": lambda s: signed(s.server, s.key, STOLEN, {"Content-Type": JSON}).adding(
        **CREATE
    ),
    "the operation, a second time": lambda s: signed(
        s.server, s.key, STOLEN, {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": JSON}
    ).adding(X_Amz_Target=CREATE["X-Amz-Target"]),
    "the operation, before the signed one": lambda s: signed(
        s.server, s.key, STOLEN, {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": JSON}
    ).before(X_Amz_Target=CREATE["X-Amz-Target"]),
    "the operation, taken away": lambda s: replace(
        signed(s.server, s.key, ACTION.encode(), {**CREATE, "X-Amz-Target": "AmazonSQS.ListQueues"}).without(
            "x-amz-target"
        )
    ).having(Content_Type=FORM),
    "the date": lambda s: s.create(seconds=-16 * MINUTE).having(X_Amz_Date=s.create().header("x-amz-date")),
    "the date, a second time": lambda s: s.create(seconds=-16 * MINUTE).adding(
        X_Amz_Date=s.create().header("x-amz-date")
    ),
    "the host": lambda s: s.create().having(Host="elsewhere.example"),
    "the host, a second time": lambda s: s.create().adding(Host="elsewhere.example"),
    "the host, by the target": lambda s: s.create().queried("/", "http://elsewhere.example/"),
    "the method": lambda s: replace(s.create(), method="PUT"),
    "the path": lambda s: s.create().queried("/", "/111111111111/other"),
    "a query": lambda s: s.list().queried("/", f"/?{ACTION}"),
    "a token of a session": lambda s: with_token(s.create()),
    "how the body is folded": lambda s: replace(s.list(), body=gzip.compress(STOLEN)).having(
        X_Amz_Target=CREATE["X-Amz-Target"], Content_Encoding="gzip"
    ),
    "the body's digest, by a word": lambda s: replace(
        signed(s.server, s.key, b'{"QueueName":"modest"}', CREATE), body=STOLEN
    ).adding(X_Amz_Content_SHA256="UNSIGNED-PAYLOAD"),
    "the body's digest, by streaming": lambda s: replace(
        signed(s.server, s.key, b'{"QueueName":"modest"}', CREATE), body=STOLEN
    ).adding(X_Amz_Content_SHA256="STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
    "the signed headers": lambda s: s.create().authorized("host;", ""),
    "an Authorization before": lambda s: s.create(STRANGER).before(
        Authorization=s.list().header("authorization")
    ),
    "an Authorization behind": lambda s: s.create(STRANGER).adding(
        Authorization=s.list().header("authorization")
    ),
    "a link's signature for a request's": lambda s: (
        s.create().without("authorization").queried("/", s.link().target)
    ),
    "a link with a body": lambda s: replace(
        s.link(), method="POST", body=ACTION.encode(), headers=(*s.link().headers, ("Content-Type", FORM))
    ),
    "a link's body by GET": lambda s: replace(
        s.link(), body=ACTION.encode(), headers=(*s.link().headers, ("Content-Type", FORM))
    ),
    "a link's operation": lambda s: s.link().queried("ListQueues", "CreateQueue"),
    "a link's parameters": lambda s: s.link().queried("Action=ListQueues", ACTION),
    "a link's parameters behind": lambda s: replace(s.link(), target=f"{s.link().target}&{ACTION}"),
    "a link's parameters behind a second signature": lambda s: replace(
        s.link(), target=f"{s.link().target}&X-Amz-Signature=0&{ACTION}"
    ),
    "a link's life": lambda s: s.link(MAKE, lives=1, seconds=-30).queried("Expires=1", "Expires=600"),
    "a link's life, a second time": lambda s: replace(
        s.link(MAKE, lives=1, seconds=-30),
        target=s.link(MAKE, lives=1, seconds=-30).target + "&X-Amz-Expires=600",
    ),
    "a link's signed headers": lambda s: s.link(MAKE).queried("SignedHeaders=host", "SignedHeaders="),
    "a link's key": lambda s: s.link(MAKE).queried(quote(s.key[0]), STRANGER[0]),
    "a link without its signature": lambda s: replace(
        s.link(MAKE), target=s.link(MAKE).target.partition("&X-Amz-Signature")[0]
    ),
    "a link after its time": lambda s: s.link(MAKE, lives=10, seconds=-30),
    "a link before its time": lambda s: s.link(MAKE, lives=600, seconds=15 * MINUTE + 30),
    "a link for more than a week": lambda s: s.link(MAKE, lives=604_801),
    "a link for no time": lambda s: s.link(MAKE, lives=0),
}


@pytest.fixture(scope="module")
def stage(strict: Server, key: Key) -> Stage:
    return Stage(strict, key)


@pytest.mark.parametrize("forge", {**SIGNERS, **CHANGES}.values(), ids=[*SIGNERS, *CHANGES])
def test_forged_requests_change_nothing(stage: Stage, forge: Callable[[Stage], Draft]) -> None:
    status, body = send(stage.server, forge(stage))
    assert b"stolen" not in body
    assert queues(stage.server, stage.key, "stolen") == [], status


@pytest.mark.parametrize("forge", SIGNERS.values(), ids=SIGNERS)
def test_unsigned_requests_are_refused_without_the_secret(
    stage: Stage, forge: Callable[[Stage], Draft]
) -> None:
    status, body = send(stage.server, forge(stage))
    assert status in (400, 403), body
    assert stage.key[1].encode() not in body


def test_signed_requests_succeed_and_may_be_sent_again(stage: Stage) -> None:
    """Within a quarter of an hour, as at Amazon: the store keeps no list of signatures."""
    made = signed(stage.server, stage.key, b'{"QueueName":"earnest"}', CREATE)
    assert [send(stage.server, made)[0] for _ in range(2)] == [200, 200]
    link = presigned(stage.server, stage.key, {**MAKE, "QueueName": "earnest-link"})
    assert send(stage.server, link)[0] == 200
    assert len(queues(stage.server, stage.key, "earnest")) == 2


@pytest.mark.parametrize(
    "path",
    ["/_aws/sqs/messages/../../..", "//", "/./", "/x/..", "/111111111111/../", "/%2e%2e/", "/_redrive/../"],
)
def test_a_link_means_the_path_that_was_signed(stage: Stage, path: str) -> None:
    """A signer normalises what routes would not: `/_aws/sqs/messages/../../..` was signed like `/`."""
    draft = stage.link({**LIST, "QueueUrl": f"{stage.server.url}/111111111111/earnest"})
    status, body = send(stage.server, draft.queried("/?", f"{path}?"))
    assert status in (400, 403, 404), body
    assert b"QueueUrl" not in body
