"""Buckets, as boto3 makes, finds, lists and removes them."""

from typing import Any

import pytest

from tests.contracts.aws.s3.buckets import BUCKET, OTHER, client, refusal
from tests.services.server import Server


def test_a_bucket_is_made_found_listed_and_removed(server: Server) -> None:
    s3 = client(server)
    assert s3.create_bucket(Bucket="spokes")["Location"] == "/spokes"
    assert s3.head_bucket(Bucket="spokes")["BucketRegion"] == "us-east-1"
    s3.create_bucket(Bucket="spokes")  # in the first region its owner may
    assert [each["Name"] for each in s3.list_buckets()["Buckets"]] == ["spokes"]
    s3.delete_bucket(Bucket="spokes")
    assert refusal(s3.head_bucket, Bucket="spokes") == ("404", 404)
    assert refusal(s3.delete_bucket, Bucket="spokes") == ("NoSuchBucket", 404)
    assert s3.list_buckets()["Buckets"] == []


def test_a_bucket_is_where_it_was_made(server: Server) -> None:
    europe = client(server, region="eu-west-1")
    place = {"LocationConstraint": "eu-west-1"}
    europe.create_bucket(Bucket="roues", CreateBucketConfiguration=place)
    assert europe.get_bucket_location(Bucket="roues")["LocationConstraint"] == "eu-west-1"
    assert refusal(europe.create_bucket, Bucket="roues", CreateBucketConfiguration=place) == (
        "BucketAlreadyOwnedByYou",
        409,
    )
    assert refusal(europe.create_bucket, Bucket="autres") == ("IllegalLocationConstraintException", 400)
    assert client(server).get_bucket_location(Bucket="roues")["LocationConstraint"] == "eu-west-1"


def test_buckets_are_listed_a_page_at_a_time(server: Server) -> None:
    s3 = client(server)
    for name in ("first", "second", "third"):
        s3.create_bucket(Bucket=name)
    page = s3.list_buckets(MaxBuckets=2)
    rest = s3.list_buckets(MaxBuckets=2, ContinuationToken=page["ContinuationToken"])
    assert [each["Name"] for each in page["Buckets"] + rest["Buckets"]] == ["first", "second", "third"]
    assert "ContinuationToken" not in rest
    assert [each["Name"] for each in s3.list_buckets(Prefix="t")["Buckets"]] == ["third"]


@pytest.mark.parametrize("number", [-(2**31) - 1, -1, 0, 10_001])
def test_a_page_of_buckets_has_one_at_least_and_ten_thousand_at_most(s3: Any, number: int) -> None:
    assert refusal(s3.list_buckets, MaxBuckets=number) == ("InvalidArgument", 400)


def test_a_bucket_with_an_object_stays(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="hub", Body=b"1")
    assert refusal(s3.delete_bucket, Bucket=BUCKET) == ("BucketNotEmpty", 409)
    s3.delete_object(Bucket=BUCKET, Key="hub")
    s3.delete_bucket(Bucket=BUCKET)


def test_a_bucket_is_its_owners_alone(server: Server, s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="hub", Body=b"1")
    stranger = client(server, OTHER)
    assert refusal(stranger.create_bucket, Bucket=BUCKET) == ("BucketAlreadyExists", 409)
    assert refusal(stranger.get_object, Bucket=BUCKET, Key="hub") == ("AccessDenied", 403)
    assert refusal(stranger.put_object, Bucket=BUCKET, Key="hub", Body=b"2") == ("AccessDenied", 403)
    assert refusal(stranger.delete_object, Bucket=BUCKET, Key="hub") == ("AccessDenied", 403)
    assert refusal(stranger.delete_bucket, Bucket=BUCKET) == ("AccessDenied", 403)
    assert stranger.list_buckets()["Buckets"] == []
    assert refusal(s3.head_object, Bucket=BUCKET, Key="hub", ExpectedBucketOwner=OTHER) == ("403", 403)


@pytest.mark.parametrize(
    "name", ["ab", "Wheels", "a_b", "a..b", "-ab", "ab-", "192.168.0.1", "x" * 64, "xn--abc"]
)
def test_a_name_that_no_bucket_has_is_refused(server_on_sqlite: Server, name: str) -> None:
    assert refusal(client(server_on_sqlite).create_bucket, Bucket=name) == ("InvalidBucketName", 400)


def test_an_operation_that_is_not_offered_is_refused_by_its_name(s3: Any) -> None:
    assert refusal(s3.list_object_versions, Bucket=BUCKET) == ("NotImplemented", 501)
    assert refusal(s3.put_object_acl, Bucket=BUCKET, Key="hub", ACL="private") == ("NotImplemented", 501)
    with pytest.raises(
        s3.exceptions.ClientError, match="Redrive does not offer the operation s3 GetObjectTorrent"
    ):
        s3.get_object_torrent(Bucket=BUCKET, Key="hub")
