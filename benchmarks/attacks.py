"""The attacks of the question `hostile`: requests of strangers and of key holders, as they go over the wire."""

import gzip
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

REGION: Final = "us-east-1"

_MIB: Final = 1024 * 1024
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_FOLDED: Final = {**_FORM, "Content-Encoding": "gzip"}
_FORGED: Final = {
    "Authorization": (
        "AWS4-HMAC-SHA256 Credential=AKIAFORGED0000000000/20260101/us-east-1/sqs/aws4_request,"
        " SignedHeaders=host;x-amz-date, Signature=00"
    ),
    "X-Amz-Date": "20260101T000000Z",
}
_LONG_TEXTS: Final = 32  # each once took 30 MB for good
_numbers: Final = itertools.count()


class Attack(NamedTuple):
    """Bytes that hostile connections send.

    Attributes:
        requests: Each connection sends the next of them, as soon as its last was answered.
        is_held: The requests lack their ends; a byte follows now and then, and nothing else.
    """

    requests: Sequence[bytes]
    is_held: bool = False


class Holder:
    """Somebody with an access key, or without one."""

    def __init__(self, url: str, key: tuple[str, str]) -> None:
        self.url = url
        self.host = url.partition("//")[2]
        self._key = key

    def client(self, service: str) -> Any:
        """A client of boto3."""
        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id=self._key[0],
            aws_secret_access_key=self._key[1],
            config=Config(retries={"total_max_attempts": 1}),
        )

    def signed(self, service: str, body: bytes, headers: Mapping[str, str], path: str = "/") -> bytes:
        """A signed request, good for a quarter of an hour however often it is sent."""
        request = AWSRequest("POST", f"{self.url}{path}", data=body, headers=dict(headers))
        SigV4Auth(Credentials(*self._key), service, REGION).add_auth(request)
        signed_headers = {name: str(value) for name, value in request.headers.items()}
        return self.plain(body, signed_headers, path=path)

    def plain(
        self, body: bytes, headers: Mapping[str, str], *, announced: int | None = None, path: str = "/"
    ) -> bytes:
        """A request with these headers alone; `announced` is the length it claims to have (bytes)."""
        length = len(body) if announced is None else announced
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return (
            f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: {length}\r\n{lines}\r\n".encode()
            + body
        )

    def sqs(self, operation: str, document: Any) -> bytes:
        """A signed call of SQS."""
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"AmazonSQS.{operation}",
        }
        return self.signed("sqs", json.dumps(document).encode(), headers)

    def new_queue(self) -> str:
        """The URL of a queue made now."""
        url: str = self.client("sqs").create_queue(QueueName=f"hostile-{next(_numbers)}")["QueueUrl"]
        return url


# ---- of strangers ----------------------------------------------------------------------------------------------------


def _refused(holder: Holder) -> Attack:
    return Attack([holder.plain(b"Action=ListQueues", _FORM)])


def _long_texts(holder: Holder) -> Attack:
    texts = [
        b"Action=Unsubscribe&SubscriptionArn=arn:aws:sns:us-east-1:111111111111:%d" % number
        + b"x" * 15_000_000
        for number in range(_LONG_TEXTS)
    ]
    return Attack([holder.plain(gzip.compress(text, 1), _FOLDED) for text in texts])


def _unfolding(holder: Holder) -> Attack:
    forms = (b"+&" * 8_380_000, b"%41&" * 4_190_000)
    return Attack([holder.plain(gzip.compress(form), _FOLDED) for form in forms])


def _unended_bodies(holder: Holder) -> Attack:
    headers = {**_FORGED, "X-Amz-Target": "AmazonSQS.SendMessage"}
    sizes = (15 * _MIB, 3 * _MIB)
    return Attack(
        [holder.plain(b" " * (size - 4096), headers, announced=size) for size in sizes], is_held=True
    )


def _unended_heads(holder: Holder) -> Attack:
    head = f"POST / HTTP/1.1\r\nHost: {holder.host}\r\nX-Slow: ".encode()
    return Attack([head, b""], is_held=True)


# ---- of key holders --------------------------------------------------------------------------------------------------

_CROSSED: Final = {
    "p": {
        "a": [{"exists": True}],
        "m": {"x": [{"exists": True}], "y": [{"anything-but": [-1]}], "z": ["never"]},
    }
}


def _crossed(count: int) -> Any:
    return {
        "p": [{"a": number, "m": {"y": number}} for number in range(count)],
        "p.m": [{"x": number, "z": "no"} for number in range(count - 1)] + [{"z": "never"}],
    }


def _filters(holder: Holder) -> Attack:
    """Two arrays whose keys alternate, and an array of words against wildcards."""
    words = {"s": [f"a1a2a3{number}" for number in range(10_000)]}
    wildcards = [{"s": [{"wildcard": f"*a{n}*b{policy}*"} for n in range(100)]} for policy in range(20)]
    return Attack(
        [
            _publication(holder, [_CROSSED], _crossed(300)),
            _publication(holder, wildcards, words),
        ]
    )


def _publication(holder: Holder, policies: Sequence[Any], message: Any) -> bytes:
    """A Publish to a topic with these filter policies, each of a queue's subscription."""
    sns = holder.client("sns")
    topic = sns.create_topic(Name=f"hostile-{next(_numbers)}")["TopicArn"]
    for policy in policies:
        arn = f"arn:aws:sqs:{REGION}:{topic.split(':')[4]}:{holder.new_queue().rpartition('/')[2]}"
        filtering = {"FilterPolicy": json.dumps(policy), "FilterPolicyScope": "MessageBody"}
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=filtering)
    form = {"Action": "Publish", "Version": "2010-03-31", "TopicArn": topic, "Message": json.dumps(message)}
    return holder.signed("sns", urlencode(form).encode(), _FORM)


def _policies(holder: Holder) -> Attack:
    statement = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*a" * 900_000}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    wish = {"QueueUrl": holder.new_queue(), "Attributes": {"Policy": policy}}
    return Attack([holder.sqs("SetQueueAttributes", wish)])


def _large_batches(holder: Holder) -> Attack:
    queue = holder.new_queue()
    batches = ({"QueueUrl": queue, "Entries": [{"Id": "a"}] * count} for count in (1_000_000, 200_000))
    return Attack([holder.sqs("SendMessageBatch", batch) for batch in batches])


ATTACKS: Final[dict[str, Callable[[Holder], Attack]]] = {
    "refused calls": _refused,
    "long texts": _long_texts,
    "forms that unfold": _unfolding,
    "bodies without an end": _unended_bodies,
    "heads without an end": _unended_heads,
    "costly filters": _filters,
    "costly policies": _policies,
    "large batches": _large_batches,
}
"""By name, what makes the attack ready on an empty server."""
