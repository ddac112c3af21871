"""S3's protocol both ways, against botocore's own serialiser and parser."""

import pytest

from redrive.aws.gateway.recognise import recognise
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.rest.rest_xml import RestXmlCodec
from redrive.aws.wire.rest.xml_input import read_xml
from redrive.model.http import Request
from tests.aws.wire.clients import Client

CREDENTIAL = (
    "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
)


def recognised(method: str, path: str, query: str = "", **headers: str) -> tuple[str, str | None] | None:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    request = Request(
        method, path, query, {"host": "localhost:4566", "authorization": CREDENTIAL, **named}, b""
    )
    found = recognise(request)
    return None if found is None else (found.service, found.operation)


@pytest.mark.parametrize(
    ("method", "path", "query", "operation"),
    [
        ("GET", "/", "", "ListBuckets"),
        ("PUT", "/wheels", "", "CreateBucket"),
        ("PUT", "/wheels/", "", "CreateBucket"),
        ("HEAD", "/wheels", "", "HeadBucket"),
        ("DELETE", "/wheels", "", "DeleteBucket"),
        ("GET", "/wheels", "location", "GetBucketLocation"),
        ("GET", "/wheels", "", "ListObjects"),
        ("GET", "/wheels", "list-type=2&prefix=a", "ListObjectsV2"),
        ("POST", "/wheels", "delete=", "DeleteObjects"),
        ("PUT", "/wheels/a/b", "", "PutObject"),
        ("PUT", "/wheels/a/b", "x-id=PutObject", "PutObject"),
        ("GET", "/wheels/2015-03-31/functions", "", "GetObject"),
        ("GET", "/wheels/a", "tagging", "GetObjectTagging"),
        ("HEAD", "/wheels/a", "", "HeadObject"),
        ("DELETE", "/wheels/a", "", "DeleteObject"),
        ("POST", "/wheels/a", "uploads", "CreateMultipartUpload"),
        ("PUT", "/wheels/a", "partNumber=1&uploadId=u", "UploadPart"),
        ("POST", "/wheels/a", "uploadId=u", "CompleteMultipartUpload"),
        ("DELETE", "/wheels/a", "uploadId=u", "AbortMultipartUpload"),
        ("GET", "/wheels/a", "uploadId=u", "ListParts"),
        ("GET", "/2015-03-31/functions/", "", "GetObject"),
    ],
)
def test_an_operation_is_known_by_method_path_and_query(
    method: str, path: str, query: str, operation: str
) -> None:
    assert recognised(method, path, query) == ("s3", operation)


def test_a_copy_is_known_by_its_source() -> None:
    assert recognised("PUT", "/wheels/a", x_amz_copy_source="/wheels/b") == ("s3", "CopyObject")
    query = "partNumber=1&uploadId=u"
    assert recognised("PUT", "/wheels/a", query, x_amz_copy_source="/wheels/b") == ("s3", "UploadPartCopy")


@pytest.mark.parametrize(
    ("host", "path", "parameters"),
    [
        ("wheels.localhost:4566", "/a/b", {"Bucket": "wheels", "Key": "a/b"}),
        ("a.b.s3.localhost:4566", "/", {"Bucket": "a.b"}),
        ("wheels.s3.eu-west-1.amazonaws.com", "/k", {"Bucket": "wheels", "Key": "k"}),
        ("s3.localhost:4566", "/wheels/k", {"Bucket": "wheels", "Key": "k"}),
        ("127.0.0.1:4566", "//k", {"Bucket": "", "Key": "k"}),
        ("127.0.0.1:4566", "/wheels//k", {"Bucket": "wheels", "Key": "/k"}),
    ],
)
def test_a_bucket_stands_in_the_host_or_in_the_path(host: str, path: str, parameters: dict[str, str]) -> None:
    found = recognise(Request("GET", path, "", {"host": host, "authorization": CREDENTIAL}, b""))
    assert found is not None
    assert isinstance(found.codec, RestXmlCodec)
    assert found.codec._parameters == parameters


@pytest.mark.parametrize(
    ("path", "query", "headers"),
    [
        ("/wheels/a", "", {}),
        ("/wheels/a", "", {"authorization": CREDENTIAL.replace("/s3/", "/sqs/")}),
        ("/wheels/a", "", {"host": "s3.localhost", "authorization": CREDENTIAL.replace("/s3/", "/sns/")}),
        ("/wheels/a", "AWSAccessKeyId=a&Signature=b&Action=SendMessage&Version=2012-11-05", {}),
    ],
)
def test_a_request_of_another_service_is_not_for_s3(path: str, query: str, headers: dict[str, str]) -> None:
    found = recognise(Request("GET", path, query, {"host": "localhost:4566", **headers}, b""))
    assert found is None or found.service != "s3"


def test_a_request_is_read_as_it_was_meant() -> None:
    client = Client("s3", "rest-xml")
    params = {
        "Bucket": "wheels",
        "Delete": {"Objects": [{"Key": "a<&>b", "ETag": "1"}, {"Key": "c"}], "Quiet": True},
    }
    request = client.request("DeleteObjects", params)
    request.headers["authorization"] = CREDENTIAL
    found = recognise(request)
    assert found is not None
    assert found.codec is not None
    assert found.codec.parse(client.service.operation("DeleteObjects"), request) == params


def test_an_answer_is_read_as_it_was_meant() -> None:
    client = Client("s3", "rest-xml")
    result = {
        "Name": "wheels",
        "Contents": [{"Key": "a & b", "Size": 5, "ETag": '"e"'}, {"Key": "c", "Size": 0, "ETag": '"f"'}],
        "CommonPrefixes": [{"Prefix": "d/"}],
        "IsTruncated": False,
    }
    response = RestXmlCodec({}).render(client.service.operation("ListObjectsV2"), result, "an-id")
    answer = client.answer("ListObjectsV2", response)
    assert {name: answer[name] for name in result} == result


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"<Delete>",
        b"<a/><b/>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a><a/>'.encode("utf-16"),
        b"<a>" * 100 + b"</a>" * 100,
        b"<a>" + b"<b/>" * 100_000 + b"</a>",
        b"<a>\xff</a>",
    ],
)
def test_a_document_that_is_no_plain_xml_is_refused(document: bytes) -> None:
    with pytest.raises(AwsError, match="MalformedXML"):
        read_xml(document)
