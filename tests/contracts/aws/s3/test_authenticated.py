"""S3 of a server that lets nobody in without a signature: every form of it, and none."""

import base64
import hashlib
import hmac
import json
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest

from tests.contracts.aws.s3.buckets import BUCKET, client, refusal
from tests.services.server import Server, serving

Answer = tuple[int, bytes, dict[str, str]]
CONTENT = b"0123456789" * 20_000


@pytest.fixture(scope="module")
def required(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("required")
    flags = ("--auth", "required", "--insecure-test-keys")
    with serving(f"sqlite:///{folder}/redrive.db", *flags, directory=folder) as server:
        s3 = client(server, "test", secret="test")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="a/ö b", Body=CONTENT)
        yield server


@pytest.fixture
def s3(required: Server) -> Any:
    return client(required, "test", secret="test")


def service_client(server: Server, service: str) -> Any:
    """A client of another service, for the bucket's account."""
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    return session.client(service, endpoint_url=server.url)


def ask(method: str, url: str, body: bytes = b"", **headers: str) -> Answer:
    """One request, with its path exactly as it stands in the URL."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port)
    try:
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request(
            method, path, body, {name.replace("_", "-"): text for name, text in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): text for name, text in answer.getheaders()}
    finally:
        connection.close()


def test_a_signed_request_is_let_in(s3: Any) -> None:
    for key in ("//a", "a/../b", "a b+c", "%41", "é"):  # S3 signs a path as it is sent
        s3.put_object(Bucket=BUCKET, Key=key, Body=CONTENT)
        assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == CONTENT
        s3.delete_object(Bucket=BUCKET, Key=key)


def test_a_request_without_a_right_signature_is_refused(required: Server) -> None:
    at = {"Bucket": BUCKET, "Key": "a/ö b"}
    assert refusal(client(required, "test", secret="wrong").get_object, **at) == (
        "SignatureDoesNotMatch",
        403,
    )
    assert refusal(client(required, "nobody").get_object, **at) == ("InvalidAccessKeyId", 403)
    host = {"Host": "s3.localhost"}
    assert ask("GET", f"{required.url}/{BUCKET}", **host)[0] == 403
    assert b"<Code>AccessDenied</Code>" in ask("GET", f"{required.url}/{BUCKET}", **host)[1]


@pytest.mark.parametrize("version", ["s3v4", None])
def test_a_presigned_url_lets_somebody_read_and_write(required: Server, version: str | None) -> None:
    config = {} if version is None else {"signature_version": version}
    s3 = client(required, "test", secret="test", **config)
    read = s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "a/ö b"})
    assert ("X-Amz-Signature" in read) is (version is not None)  # boto3's own choice is Version 2
    assert ask("GET", read)[:2] == (200, CONTENT)
    shown = s3.generate_presigned_url(
        "get_object", {"Bucket": BUCKET, "Key": "a/ö b", "ResponseContentType": "text/x-chosen"}
    )
    assert ask("GET", shown)[2]["content-type"] == "text/x-chosen"
    written = s3.generate_presigned_url(
        "put_object", {"Bucket": BUCKET, "Key": "new +1", "ContentType": "text/x", "Metadata": {"n": "1"}}
    )
    body = CONTENT * 10
    headers = {"Content_Type": "text/x", "x_amz_meta_n": "1"}
    assert ask("PUT", written, body, **headers)[0] == 200
    head = s3.head_object(Bucket=BUCKET, Key="new +1")
    assert (head["ContentLength"], head["ContentType"], head["Metadata"]) == (len(body), "text/x", {"n": "1"})
    for url in (read.replace("GET", ""), written):
        other = url.replace("new%20%2B1", "other").replace("a/%C3%B6%20b", "other")
        assert ask("PUT", other, b"", **headers)[0] == 403
    assert ask("DELETE", written, **headers)[0] == 403
    assert ask("GET", read + "0")[0] == 403


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_a_presigned_url_ends(required: Server, version: str) -> None:
    s3 = client(required, "test", secret="test", signature_version=version)
    url = s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "a/ö b"}, ExpiresIn=-1)
    assert ask("GET", url)[0] in (400, 403)
    assert CONTENT not in ask("GET", url)[1]


def test_a_bucket_in_the_host_is_signed_as_one_in_the_path(required: Server) -> None:
    port = urlsplit(required.url).port
    for host in (f"{BUCKET}.localhost:{port}", f"{BUCKET}.s3.localhost:{port}"):
        status, body, _ = signed(required, "GET", "/a/%C3%B6%20b", host=host)
        assert (status, body) == (200, CONTENT)


def signed(
    server: Server,
    method: str,
    path: str,
    body: bytes = b"",
    payload: str = "UNSIGNED-PAYLOAD",
    host: str = "",
    chunks: tuple[bytes, ...] | None = None,
    trailer: str = "",
    spoiled: bool = False,
    **more: str,
) -> Answer:
    """A request signed by the recipe of S3's documentation, with a body in chunks where `chunks` has some."""
    now = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    headers = {
        "host": host or urlsplit(server.url).netloc,
        "x-amz-content-sha256": payload,
        "x-amz-date": now,
        **{name.replace("_", "-"): text for name, text in more.items()},
    }
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{payload}"
    key = b"AWS4test"
    for each in scope.split("/"):
        key = hmac.new(key, each.encode(), hashlib.sha256).digest()

    def sign(kind: str, *rest: str) -> str:
        text = "\n".join([f"AWS4-HMAC-SHA256{kind}", now, scope, *rest])
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    signature = sign("", hashlib.sha256(canonical.encode()).hexdigest())
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential=test/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    if chunks is not None:
        signs = payload.startswith("STREAMING-AWS4")
        nothing = hashlib.sha256(b"").hexdigest()
        for chunk in (*chunks, b""):
            signature = sign("-PAYLOAD", signature, nothing, hashlib.sha256(chunk).hexdigest())
            shown = ("0" * 64 if spoiled and not chunk else signature) if signs else ""
            body += f"{len(chunk):x}{';chunk-signature=' + shown if signs else ''}\r\n".encode()
            body += chunk + b"\r\n" if chunk else b""
        if trailer:
            body += f"{trailer}\r\n".encode()
            if signs:
                digest = hashlib.sha256(f"{trailer}\n".encode()).hexdigest()
                body += f"x-amz-trailer-signature:{sign('-TRAILER', signature, digest)}\r\n".encode()
        body += b"\r\n"
    headers["Host"] = headers.pop("host")
    return ask(method, f"{server.url}{path}", body, **headers)


WRONG = "x-amz-checksum-crc32:AAAAAA=="
CHUNKS = (b"a" * 65_536, b"b" * 10)


def is_missing(s3: Any, key: str) -> bool:
    return key not in {each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET).get("Contents", ())}


@pytest.mark.parametrize("signs", [True, False])
@pytest.mark.parametrize("with_trailer", [True, False])
def test_a_body_in_chunks_is_put_together(required: Server, s3: Any, signs: bool, with_trailer: bool) -> None:
    content = b"".join(CHUNKS)
    checksum = base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()
    payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" if signs else "STREAMING-UNSIGNED-PAYLOAD"
    if with_trailer or not signs:
        payload += "-TRAILER"
    trailer = f"x-amz-checksum-crc32:{checksum}" if with_trailer else ""
    named = {"x_amz_trailer": "x-amz-checksum-crc32"} if with_trailer else {}
    more = {"x_amz_decoded_content_length": str(len(content)), "content_encoding": "aws-chunked", **named}
    sent = {"payload": payload, "chunks": CHUNKS, **more}
    if not signs or payload.endswith("TRAILER") is with_trailer:
        assert signed(required, "PUT", f"/{BUCKET}/chunked", trailer=trailer, **sent)[0] == 200
        read = s3.get_object(Bucket=BUCKET, Key="chunked", ChecksumMode="ENABLED")
        assert read["Body"].read() == content
        assert "ContentEncoding" not in read
        assert (read.get("ChecksumCRC32") == checksum) is with_trailer
    if with_trailer:
        status, body, _ = signed(required, "PUT", f"/{BUCKET}/chunked", trailer=WRONG, **sent)
        assert (status, b"BadDigest" in body) == (400, True)
        for declared, trailers in (
            ("x-amz-checksum-crc32", ""),
            ("x-amz-checksum-sha256", trailer),
            ("", trailer),
        ):
            other = {**sent, "x_amz_trailer": declared}
            status, body, _ = signed(required, "PUT", f"/{BUCKET}/unlike", trailer=trailers, **other)
            assert (status, b"MalformedTrailerError" in body) == (400, True)
        assert is_missing(s3, "unlike")
    if signs:
        spoiled = signed(required, "PUT", f"/{BUCKET}/chunked", trailer=trailer, spoiled=True, **sent)
        assert (spoiled[0], b"SignatureDoesNotMatch" in spoiled[1]) == (403, True)
    short = {**sent, "x_amz_decoded_content_length": "7"}
    assert b"IncompleteBody" in signed(required, "PUT", f"/{BUCKET}/chunked", trailer=trailer, **short)[1]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"5\r\nabc",
        b"zz\r\n",
        b"5\r\nabcde",
        b"5\r\nabcde\r\n",
        b"ffffffff\r\nabc\r\n0\r\n\r\n",
        b"0\r\nx\r\n",
        b"3\r\nabc\r\n0\r\n",
    ],
)
def test_chunks_that_are_not_whole_are_refused(required: Server, body: bytes) -> None:
    more = {"x_amz_decoded_content_length": "5", "content_encoding": "aws-chunked"}
    status, _, _ = signed(
        required, "PUT", f"/{BUCKET}/chunked", body, payload="STREAMING-UNSIGNED-PAYLOAD-TRAILER", **more
    )
    assert status == 400


def test_a_body_that_is_not_the_signed_one_is_refused(required: Server) -> None:
    digest = hashlib.sha256(b"signed").hexdigest()
    path = f"/{BUCKET}/{quote('k')}"
    assert signed(required, "PUT", path, b"signed", payload=digest)[0] == 200
    assert signed(required, "PUT", path, b"other", payload=digest)[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/wheels/../../redrive.db",
        "/wheels/..%2f..%2f..%2fetc%2fpasswd",
        "/wheels/%2e%2e/%2e%2e/redrive.db",
        "/..%2f..%2fredrive.db/k",
        "/%2e%2e/k",
        "/wheels/%00",
        "/wheels/a%00.txt",
        "/wheels/%ff%fe",
        "/wheels/" + "x" * 5000,
        "/wheels/..\\..\\redrive.db",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_store(required: Server, path: str) -> None:
    """Whatever a path says, what is written is a content of the server's own naming, or nothing."""
    folder: Path = required.log.parent
    before = {each for each in folder.rglob("*") if each.is_file()}
    status, body, _ = signed(required, "PUT", quote(path, safe="/%-_.~"), b"escaped")
    assert status in (200, 400, 403, 404, 409), body
    new = {each for each in folder.rglob("*") if each.is_file()} - before
    assert all(each.is_relative_to(folder / "redrive-blobs" / "s3-objects") for each in new)
    read = signed(required, "GET", quote(path, safe="/%-_.~"))
    assert (read[0] == 200) is (status == 200)
    assert read[0] != 200 or read[1] == b"escaped"
    assert not (folder.parent / "redrive.db").exists()


def test_a_notification_needs_the_policies_of_the_queue_and_of_its_key(required: Server, s3: Any) -> None:
    sqs, kms = service_client(required, "sqs"), service_client(required, "kms")
    queue = sqs.create_queue(QueueName="told")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    rule = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}
    wanted = {"Bucket": BUCKET, "NotificationConfiguration": {"QueueConfigurations": [rule]}}

    def policy(service: str, *actions: str, resource: str) -> dict[str, Any]:
        who = {"Service": service} if "." in service else {"AWS": service}
        return {"Effect": "Allow", "Principal": who, "Action": list(actions), "Resource": resource}

    def set_queue(**attributes: str) -> None:
        sqs.set_queue_attributes(QueueUrl=queue, Attributes=attributes)

    refused = ("InvalidArgument", 400)
    assert refusal(s3.put_bucket_notification_configuration, **wanted) == refused
    let_in = policy("s3.amazonaws.com", "sqs:SendMessage", resource=arn)
    let_in["Condition"] = {"ArnEquals": {"aws:SourceArn": f"arn:aws:s3:::{BUCKET}"}}
    set_queue(Policy=json.dumps({"Version": "2012-10-17", "Statement": [let_in]}))
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    set_queue(KmsMasterKeyId=key)
    assert refusal(s3.put_bucket_notification_configuration, **wanted) == refused
    owner = policy(f"arn:aws:iam::{arn.split(':')[4]}:root", "kms:*", resource="*")
    service = policy("s3.amazonaws.com", "kms:GenerateDataKey", "kms:Decrypt", resource="*")
    both = json.dumps({"Version": "2012-10-17", "Statement": [owner, service]})
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=both)
    s3.put_bucket_notification_configuration(**wanted)
    s3.put_object(Bucket=BUCKET, Key="told", Body=b"")
    told: list[str] = []
    while len(told) < 2:
        answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=20)
        told += [message["Body"] for message in answer.get("Messages", ())]
    assert [json.loads(text).get("Event", "Records") for text in told] == ["s3:TestEvent", "Records"]
    s3.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration={})
