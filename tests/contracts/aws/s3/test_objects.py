"""Objects, as boto3 writes, reads and removes them."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contracts.aws.s3.buckets import BUCKET, client, refusal
from tests.services.server import Server

CONTENT = bytes(range(256)) * 40
TAG = f'"{hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()}"'

#: Of "123456789": the check values of the catalogue of CRCs, and digests of coreutils.
CHECKSUMS = {
    "CRC32": "y/Q5Jg==",
    "CRC32C": "4waSgw==",
    "CRC64NVME": "rosUhgp5mIg=",
    "SHA1": "98O8HYCOBHMq32eZZczDTKeuNEE=",
    "SHA256": "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
}


def test_an_object_is_read_as_it_was_written(s3: Any) -> None:
    written = s3.put_object(
        Bucket=BUCKET,
        Key="rims/front.bin",
        Body=CONTENT,
        ContentType="application/x-rim",
        CacheControl="max-age=60",
        ContentEncoding="gzip",
        Metadata={"Holes": "36", "maker": "a b"},
    )
    assert written["ETag"] == TAG
    read = s3.get_object(Bucket=BUCKET, Key="rims/front.bin")
    assert read["Body"].read() == CONTENT
    head = s3.head_object(Bucket=BUCKET, Key="rims/front.bin")
    for shown in (read, head):
        assert shown["ETag"] == TAG
        assert shown["ContentLength"] == len(CONTENT)
        assert shown["ContentType"] == "application/x-rim"
        assert (shown["CacheControl"], shown["ContentEncoding"]) == ("max-age=60", "gzip")
        assert shown["Metadata"] == {"holes": "36", "maker": "a b"}
        assert shown["AcceptRanges"] == "bytes"
        assert isinstance(shown["LastModified"], datetime)


def test_an_object_is_written_over_and_removed(s3: Any) -> None:
    for content in (b"first", b"second", b""):
        s3.put_object(Bucket=BUCKET, Key="k", Body=content)
        assert s3.get_object(Bucket=BUCKET, Key="k")["Body"].read() == content
    assert s3.head_object(Bucket=BUCKET, Key="k")["ContentType"] == "binary/octet-stream"
    assert s3.delete_object(Bucket=BUCKET, Key="k")["ResponseMetadata"]["HTTPStatusCode"] == 204
    s3.delete_object(Bucket=BUCKET, Key="k")
    assert refusal(s3.get_object, Bucket=BUCKET, Key="k") == ("NoSuchKey", 404)
    assert refusal(s3.head_object, Bucket=BUCKET, Key="k") == ("404", 404)
    assert refusal(s3.get_object, Bucket="nowhere", Key="k") == ("NoSuchBucket", 404)
    assert refusal(s3.put_object, Bucket="nowhere", Key="k", Body=b"") == ("NoSuchBucket", 404)


@pytest.mark.parametrize(
    "key",
    [
        "a/../b",
        "..",
        "/",
        "//a//",
        "./a",
        "a b+c",
        "ü/ключ/鍵",
        "%2e%2e%2f",
        "?x=1&y",
        "x" * 1024,
        "a\\b",
        "é" * 512,
    ],
)
def test_any_key_is_a_key(s3: Any, key: str) -> None:
    s3.put_object(Bucket=BUCKET, Key=key, Body=key.encode())
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == key.encode()
    s3.delete_object(Bucket=BUCKET, Key=key)
    assert refusal(s3.get_object, Bucket=BUCKET, Key=key) == ("NoSuchKey", 404)


def test_a_key_that_no_object_has_is_refused(s3: Any) -> None:
    assert refusal(s3.put_object, Bucket=BUCKET, Key="x" * 1025, Body=b"") == ("KeyTooLongError", 400)
    assert refusal(s3.put_object, Bucket=BUCKET, Key="a\0b", Body=b"") == ("InvalidArgument", 400)


@pytest.mark.parametrize(
    ("asked", "first", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=100-", 100, None),
        ("bytes=-16", -16, None),
        ("bytes=10000-99999", 10000, None),
    ],
)
def test_a_range_is_read(s3: Any, asked: str, first: int, end: int | None) -> None:
    s3.put_object(Bucket=BUCKET, Key="k", Body=CONTENT)
    expected = CONTENT[first:end]
    read = s3.get_object(Bucket=BUCKET, Key="k", Range=asked)
    assert read["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert read["Body"].read() == expected
    begin = CONTENT.index(expected) if first >= 0 else len(CONTENT) + first
    begin = first if first >= 0 else begin
    assert read["ContentRange"] == f"bytes {begin}-{begin + len(expected) - 1}/{len(CONTENT)}"
    assert s3.head_object(Bucket=BUCKET, Key="k", Range=asked)["ContentLength"] == len(expected)


def test_a_range_behind_the_end_is_refused(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="k", Body=CONTENT)
    assert refusal(s3.get_object, Bucket=BUCKET, Key="k", Range="bytes=99999-") == ("InvalidRange", 416)


def test_conditions_of_readers_hold_or_refuse(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="k", Body=CONTENT)
    at = {"Bucket": BUCKET, "Key": "k"}
    modified = s3.head_object(**at)["LastModified"]
    hour = timedelta(hours=1)
    assert s3.get_object(**at, IfMatch=TAG, IfNoneMatch='"other"')["Body"].read() == CONTENT
    assert refusal(s3.get_object, **at, IfMatch='"other"') == ("PreconditionFailed", 412)
    assert refusal(s3.get_object, **at, IfNoneMatch=TAG) == ("304", 304)
    assert refusal(s3.get_object, **at, IfModifiedSince=modified) == ("304", 304)
    assert refusal(s3.get_object, **at, IfUnmodifiedSince=modified - hour) == ("PreconditionFailed", 412)
    assert s3.head_object(**at, IfModifiedSince=modified - hour)["ContentLength"] == len(CONTENT)


def test_conditions_of_writers_hold_or_refuse(s3: Any) -> None:
    at = {"Bucket": BUCKET, "Key": "k"}
    assert refusal(s3.put_object, **at, Body=b"", IfMatch=TAG) == ("NoSuchKey", 404)
    s3.put_object(**at, Body=CONTENT, IfNoneMatch="*")
    assert refusal(s3.put_object, **at, Body=b"2", IfNoneMatch="*") == ("PreconditionFailed", 412)
    assert refusal(s3.put_object, **at, Body=b"2", IfMatch='"other"') == ("PreconditionFailed", 412)
    assert s3.get_object(**at)["Body"].read() == CONTENT
    s3.put_object(**at, Body=b"2", IfMatch=TAG)
    assert s3.get_object(**at)["Body"].read() == b"2"


def test_a_reader_chooses_headers_of_the_answer(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="k", Body=CONTENT)
    expires = datetime(2030, 1, 2, tzinfo=UTC)
    read = s3.get_object(
        Bucket=BUCKET,
        Key="k",
        ResponseContentType="text/x-chosen",
        ResponseContentDisposition='attachment; filename="k"',
        ResponseExpires=expires,
    )
    assert read["Body"].read() == CONTENT
    assert (read["ContentType"], read["ContentDisposition"]) == ("text/x-chosen", 'attachment; filename="k"')
    assert read["ExpiresString"] == "Wed, 02 Jan 2030 00:00:00 GMT"
    injected = {"Bucket": BUCKET, "Key": "k", "ResponseContentType": "a\r\nSet-Cookie: b"}
    assert refusal(s3.get_object, **injected) == ("InvalidArgument", 400)


@pytest.mark.parametrize("algorithm", CHECKSUMS)
def test_a_checksum_is_verified_kept_and_handed_back(s3: Any, algorithm: str) -> None:
    right = CHECKSUMS[algorithm]
    at = {"Bucket": BUCKET, "Key": "k", "Body": b"123456789"}
    member = f"Checksum{algorithm}"
    assert s3.put_object(**at, **{member: right})[member] == right
    shown = s3.head_object(Bucket=BUCKET, Key="k", ChecksumMode="ENABLED")
    assert (shown[member], shown["ChecksumType"]) == (right, "FULL_OBJECT")
    assert member not in s3.head_object(Bucket=BUCKET, Key="k")
    wrong = "A" + right[1:]
    assert refusal(s3.put_object, **at, **{member: wrong}) == ("BadDigest", 400)
    assert refusal(s3.put_object, **at, ContentMD5="1B2M2Y8AsgTpgAmY7PhCfg==") == ("BadDigest", 400)
    for malformed in ("no", "ä"):
        assert refusal(s3.put_object, **at, ContentMD5=malformed) == ("InvalidDigest", 400)


def test_several_objects_are_removed_at_once(s3: Any) -> None:
    for key in ("a", "b/c", "d&<e>"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"1")
    asked = [{"Key": "a"}, {"Key": "d&<e>"}, {"Key": "missing"}, {"Key": "b/c", "ETag": '"other"'}]
    answer = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": asked})
    assert [each["Key"] for each in answer["Deleted"]] == ["a", "d&<e>", "missing"]
    assert [(each["Key"], each["Code"]) for each in answer["Errors"]] == [("b/c", "PreconditionFailed")]
    assert s3.head_object(Bucket=BUCKET, Key="b/c")["ContentLength"] == 1
    assert "Deleted" not in s3.delete_objects(
        Bucket=BUCKET, Delete={"Objects": [{"Key": "b/c"}], "Quiet": True}
    )
    too_many = [{"Key": str(number)} for number in range(1001)]
    assert refusal(s3.delete_objects, Bucket=BUCKET, Delete={"Objects": too_many}) == ("MalformedXML", 400)


@pytest.mark.parametrize(
    "params",
    [
        {"ServerSideEncryption": "aws:kms"},
        {"WebsiteRedirectLocation": "/elsewhere"},
        {"ACL": "public-read"},
        {"StorageClass": "GLACIER"},
        {"ObjectLockMode": "GOVERNANCE"},
    ],
)
def test_a_parameter_that_would_be_ignored_is_refused(s3: Any, params: dict[str, str]) -> None:
    assert refusal(s3.put_object, Bucket=BUCKET, Key="k", Body=b"1", **params) == ("NotImplemented", 501)
    assert refusal(s3.head_object, Bucket=BUCKET, Key="k") == ("404", 404)


def test_metadata_has_a_bound(s3: Any) -> None:
    metadata = {"long": "x" * 2048}
    assert refusal(s3.put_object, Bucket=BUCKET, Key="k", Body=b"", Metadata=metadata) == (
        "MetadataTooLarge",
        400,
    )


def test_a_removed_object_leaves_no_content_behind(server_on_sqlite: Server) -> None:
    s3 = client(server_on_sqlite)
    s3.create_bucket(Bucket=BUCKET)
    contents = server_on_sqlite.log.parent / "redrive-blobs" / "s3-objects"
    before = {path for path in contents.rglob("*") if path.is_file()}
    for number in range(3):
        s3.put_object(Bucket=BUCKET, Key="k", Body=b"%d" % number)
    kept = {path for path in contents.rglob("*") if path.is_file()} - before
    assert [path.read_bytes() for path in kept] == [b"2"]
    s3.delete_object(Bucket=BUCKET, Key="k")
    assert {path for path in contents.rglob("*") if path.is_file()} == before
    s3.delete_bucket(Bucket=BUCKET)


def test_tags_of_an_object_come_with_it_or_later(s3: Any) -> None:
    named = {"Bucket": BUCKET, "Key": "tagged"}
    s3.put_object(**named, Body=b"1", Tagging="team=rims&empty=")
    assert s3.get_object_tagging(**named)["TagSet"] == [
        {"Key": "team", "Value": "rims"},
        {"Key": "empty", "Value": ""},
    ]
    s3.put_object_tagging(**named, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    assert s3.get_object_tagging(**named)["TagSet"] == [{"Key": "a", "Value": "b"}]
    assert s3.get_object(**named)["Body"].read() == b"1"
    s3.delete_object_tagging(**named)
    assert s3.get_object_tagging(**named)["TagSet"] == []
    many = {"TagSet": [{"Key": str(number), "Value": ""} for number in range(11)]}
    assert refusal(s3.put_object_tagging, **named, Tagging=many) == ("BadRequest", 400)
    assert refusal(s3.put_object, **named, Body=b"", Tagging="a=1&a=2") == ("InvalidTag", 400)
    assert refusal(s3.get_object_tagging, Bucket=BUCKET, Key="none") == ("NoSuchKey", 404)
