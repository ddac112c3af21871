"""Copies of objects."""

from typing import Any

from tests.contracts.aws.s3.buckets import BUCKET, OTHER, client, refusal
from tests.services.server import Server

SOURCE = {"Bucket": BUCKET, "Key": "a/ö b"}


def test_a_copy_has_content_and_headers_of_its_source(s3: Any) -> None:
    s3.put_object(**SOURCE, Body=b"hub", ContentType="text/hub", Metadata={"holes": "36"})
    s3.create_bucket(Bucket="spokes")
    copied = s3.copy_object(Bucket="spokes", Key="c", CopySource=SOURCE)["CopyObjectResult"]
    s3.delete_object(**SOURCE)
    read = s3.get_object(Bucket="spokes", Key="c")
    assert read["Body"].read() == b"hub"
    assert (read["ETag"], read["ContentType"]) == (copied["ETag"], "text/hub")
    assert read["Metadata"] == {"holes": "36"}


def test_a_copy_may_have_headers_of_its_own(s3: Any) -> None:
    s3.put_object(**SOURCE, Body=b"hub", Metadata={"holes": "36"})
    assert refusal(s3.copy_object, **SOURCE, CopySource=SOURCE) == ("InvalidRequest", 400)
    s3.copy_object(
        **SOURCE, CopySource=SOURCE, MetadataDirective="REPLACE", ContentType="text/x", Metadata={"n": "1"}
    )
    read = s3.get_object(**SOURCE)
    assert (read["Body"].read(), read["ContentType"], read["Metadata"]) == (b"hub", "text/x", {"n": "1"})


def test_a_copy_that_cannot_be_made_is_refused(server: Server, s3: Any) -> None:
    to = {"Bucket": BUCKET, "Key": "c"}
    assert refusal(s3.copy_object, **to, CopySource=SOURCE) == ("NoSuchKey", 404)
    assert refusal(s3.copy_object, **to, CopySource="nowhere/a") == ("NoSuchBucket", 404)
    assert refusal(s3.copy_object, **to, CopySource="nothing") == ("InvalidArgument", 400)
    tag = s3.put_object(**SOURCE, Body=b"hub")["ETag"]
    assert refusal(s3.copy_object, **to, CopySource=SOURCE, CopySourceIfNoneMatch=tag) == (
        "PreconditionFailed",
        412,
    )
    stranger = client(server, OTHER)
    stranger.create_bucket(Bucket="theirs")
    assert refusal(stranger.copy_object, Bucket="theirs", Key="c", CopySource=SOURCE) == ("AccessDenied", 403)
