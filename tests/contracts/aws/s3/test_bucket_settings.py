"""Settings of buckets, as deployment tools read and write them: policies, tags, blocks, and what there is not."""

import json
from typing import Any

import pytest

from tests.contracts.aws.s3.buckets import ACCOUNT, BUCKET, OTHER, client, refusal
from tests.services.server import Server

ARN = f"arn:aws:s3:::{BUCKET}"
EVERYBODY = {"AWS": "*"}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def statement(
    action: str, resource: str = f"{ARN}/*", effect: str = "Allow", **others: Any
) -> dict[str, Any]:
    about = {"Principal": {"AWS": f"arn:aws:iam::{OTHER}:root"}}
    return {"Effect": effect, "Action": action, "Resource": resource, **about, **others}


def test_a_policy_lets_another_account_in_as_far_as_it_says(server: Server, s3: Any) -> None:
    stranger = client(server, OTHER)
    s3.put_object(Bucket=BUCKET, Key="hub", Body=b"1")
    s3.put_object(Bucket=BUCKET, Key="kept/hub", Body=b"2")
    text = policy(
        statement("s3:GetObject"),
        statement("s3:ListBucket", ARN),
        statement("s3:GetObject", f"{ARN}/kept/*", "Deny"),
    )
    s3.put_bucket_policy(Bucket=BUCKET, Policy=text)
    assert json.loads(s3.get_bucket_policy(Bucket=BUCKET)["Policy"]) == json.loads(text)
    assert stranger.get_object(Bucket=BUCKET, Key="hub")["Body"].read() == b"1"
    assert [each["Key"] for each in stranger.list_objects_v2(Bucket=BUCKET)["Contents"]] == [
        "hub",
        "kept/hub",
    ]
    assert refusal(stranger.get_object, Bucket=BUCKET, Key="kept/hub") == ("AccessDenied", 403)
    assert refusal(stranger.put_object, Bucket=BUCKET, Key="hub", Body=b"3") == ("AccessDenied", 403)
    assert s3.get_object(Bucket=BUCKET, Key="kept/hub")["Body"].read() == b"2"
    s3.delete_bucket_policy(Bucket=BUCKET)
    assert refusal(stranger.get_object, Bucket=BUCKET, Key="hub") == ("AccessDenied", 403)
    assert refusal(s3.get_bucket_policy, Bucket=BUCKET) == ("NoSuchBucketPolicy", 404)


def test_a_request_that_stays_on_the_machine_needs_no_tls(server: Server, s3: Any) -> None:
    insecure = {"Bool": {"aws:SecureTransport": "false"}}
    shut = statement("s3:*", f"{ARN}/*", "Deny", Principal="*", Condition=insecure)
    s3.put_bucket_policy(Bucket=BUCKET, Policy=policy(shut))
    s3.put_object(Bucket=BUCKET, Key="hub", Body=b"1")
    proxied = client(server, ACCOUNT)

    def forward(request: Any, **_: Any) -> None:
        request.headers["X-Forwarded-For"] = "192.0.2.1"

    proxied.meta.events.register("before-send.s3", forward)
    assert refusal(proxied.put_object, Bucket=BUCKET, Key="hub", Body=b"2") == ("AccessDenied", 403)
    s3.delete_bucket_policy(Bucket=BUCKET)


def test_a_policy_is_its_owners_whatever_it_says(server: Server, s3: Any) -> None:
    stranger = client(server, OTHER)
    shut = statement("s3:*", ARN, "Deny", Principal=EVERYBODY)
    s3.put_bucket_policy(Bucket=BUCKET, Policy=policy(shut, statement("s3:*", ARN)))
    assert refusal(s3.list_objects_v2, Bucket=BUCKET) == ("AccessDenied", 403)
    assert refusal(stranger.get_bucket_policy, Bucket=BUCKET) == ("AccessDenied", 403)
    assert refusal(stranger.delete_bucket_policy, Bucket=BUCKET) == ("AccessDenied", 403)
    s3.delete_bucket_policy(Bucket=BUCKET)
    assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "{",
        policy(),
        policy(statement("s3:GetObject", "arn:aws:s3:::others/*")),
        policy(statement("s3:GetObject", f"{ARN}s/*")),
        policy(statement("sqs:SendMessage")),
        policy(statement("s3:GetObject", effect="Perhaps")),
        policy(statement("s3:GetObject", Sid="x" * 21_000)),
    ],
)
def test_a_policy_that_a_bucket_cannot_have_is_refused(s3: Any, text: str) -> None:
    assert refusal(s3.put_bucket_policy, Bucket=BUCKET, Policy=text) == ("MalformedPolicy", 400)
    assert refusal(s3.get_bucket_policy_status, Bucket=BUCKET) == ("NoSuchBucketPolicy", 404)


def test_public_access_is_blocked_where_a_bucket_says_so(server: Server, s3: Any) -> None:
    stranger = client(server, OTHER)
    s3.put_object(Bucket=BUCKET, Key="hub", Body=b"1")
    code = "NoSuchPublicAccessBlockConfiguration"
    assert refusal(s3.get_public_access_block, Bucket=BUCKET) == (code, 404)
    public = policy(statement("s3:GetObject", Principal="*"))
    narrow = {"StringEquals": {"aws:PrincipalAccount": OTHER}}
    s3.put_bucket_policy(Bucket=BUCKET, Policy=public)
    assert s3.get_bucket_policy_status(Bucket=BUCKET)["PolicyStatus"]["IsPublic"] is True
    assert stranger.get_object(Bucket=BUCKET, Key="hub")["Body"].read() == b"1"
    blocks = dict.fromkeys(
        ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
    )
    s3.put_public_access_block(Bucket=BUCKET, PublicAccessBlockConfiguration=blocks)
    assert s3.get_public_access_block(Bucket=BUCKET)["PublicAccessBlockConfiguration"] == blocks
    assert refusal(stranger.get_object, Bucket=BUCKET, Key="hub") == ("AccessDenied", 403)
    assert s3.get_object(Bucket=BUCKET, Key="hub")["Body"].read() == b"1"
    assert refusal(s3.put_bucket_policy, Bucket=BUCKET, Policy=public) == ("AccessDenied", 403)
    s3.put_bucket_policy(
        Bucket=BUCKET, Policy=policy(statement("s3:GetObject", Principal="*", Condition=narrow))
    )
    assert s3.get_bucket_policy_status(Bucket=BUCKET)["PolicyStatus"]["IsPublic"] is False
    assert stranger.get_object(Bucket=BUCKET, Key="hub")["Body"].read() == b"1"
    s3.delete_public_access_block(Bucket=BUCKET)
    assert refusal(s3.get_public_access_block, Bucket=BUCKET) == (code, 404)


def test_tags_of_a_bucket(server: Server, s3: Any) -> None:
    assert refusal(s3.get_bucket_tagging, Bucket=BUCKET) == ("NoSuchTagSet", 404)
    tags = [{"Key": "team", "Value": "wheels"}, {"Key": "ö", "Value": ""}]
    s3.put_bucket_tagging(Bucket=BUCKET, Tagging={"TagSet": tags})
    assert s3.get_bucket_tagging(Bucket=BUCKET)["TagSet"] == tags
    for wrong in (tags[:1] * 2, [{"Key": "", "Value": "a"}], [{"Key": "aws:a", "Value": "a"}]):
        assert refusal(s3.put_bucket_tagging, Bucket=BUCKET, Tagging={"TagSet": wrong}) == ("InvalidTag", 400)
    s3.delete_bucket_tagging(Bucket=BUCKET)
    assert refusal(s3.get_bucket_tagging, Bucket=BUCKET) == ("NoSuchTagSet", 404)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("get_bucket_cors", "NoSuchCORSConfiguration"),
        ("get_bucket_encryption", "ServerSideEncryptionConfigurationNotFoundError"),
        ("get_bucket_lifecycle_configuration", "NoSuchLifecycleConfiguration"),
        ("get_bucket_replication", "ReplicationConfigurationNotFoundError"),
        ("get_bucket_website", "NoSuchWebsiteConfiguration"),
        ("get_object_lock_configuration", "ObjectLockConfigurationNotFoundError"),
    ],
)
def test_settings_that_no_bucket_has_are_absent(s3: Any, operation: str, code: str) -> None:
    assert refusal(getattr(s3, operation), Bucket=BUCKET) == (code, 404)
    assert refusal(getattr(s3, operation), Bucket="nobodys") == ("NoSuchBucket", 404)


def test_a_bucket_is_shown_as_it_is(s3: Any) -> None:
    assert "Status" not in s3.get_bucket_versioning(Bucket=BUCKET)
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=BUCKET)
    assert "Status" not in s3.get_bucket_accelerate_configuration(Bucket=BUCKET)
    assert "QueueConfigurations" not in s3.get_bucket_notification_configuration(Bucket=BUCKET)
    assert s3.get_bucket_request_payment(Bucket=BUCKET)["Payer"] == "BucketOwner"
    rules = s3.get_bucket_ownership_controls(Bucket=BUCKET)["OwnershipControls"]["Rules"]
    assert rules == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    acl = s3.get_bucket_acl(Bucket=BUCKET)
    assert (acl["Owner"]["ID"], [grant["Permission"] for grant in acl["Grants"]]) == (
        ACCOUNT,
        ["FULL_CONTROL"],
    )
    enabled = {"Status": "Enabled"}
    refused = refusal(s3.put_bucket_versioning, Bucket=BUCKET, VersioningConfiguration=enabled)
    assert refused == ("NotImplemented", 501)
    encrypted = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    refused = refusal(s3.put_bucket_encryption, Bucket=BUCKET, ServerSideEncryptionConfiguration=encrypted)
    assert refused == ("NotImplemented", 501)


def test_uploads_under_way_are_listed(server: Server, s3: Any) -> None:
    begun: dict[str, list[str]] = {}
    for key in ("a/2", "b", "a/1", "b", "c/1", "b"):
        upload = s3.create_multipart_upload(Bucket=BUCKET, Key=key)
        begun.setdefault(key, []).append(upload["UploadId"])
    every = s3.list_multipart_uploads(Bucket=BUCKET)
    keys = [each["Key"] for each in every["Uploads"]]
    assert (keys, every["IsTruncated"]) == (["a/1", "a/2", "b", "b", "b", "c/1"], False)
    assert {each["UploadId"] for each in every["Uploads"] if each["Key"] == "b"} == set(begun["b"])
    pages = s3.get_paginator("list_multipart_uploads").paginate(
        Bucket=BUCKET, PaginationConfig={"PageSize": 2}
    )
    assert [each["UploadId"] for page in pages for each in page["Uploads"]] == [
        each["UploadId"] for each in every["Uploads"]
    ]
    grouped = s3.list_multipart_uploads(Bucket=BUCKET, Delimiter="/")
    assert [each["Prefix"] for each in grouped["CommonPrefixes"]] == ["a/", "c/"]
    assert [each["Key"] for each in grouped["Uploads"]] == ["b", "b", "b"]
    first = s3.list_multipart_uploads(Bucket=BUCKET, Delimiter="/", MaxUploads=1)
    assert (first["NextKeyMarker"], first["IsTruncated"]) == ("a/", True)
    rest = s3.list_multipart_uploads(Bucket=BUCKET, Delimiter="/", KeyMarker="a/")
    assert [each["Prefix"] for each in rest["CommonPrefixes"]] == ["c/"]
    assert len(s3.list_multipart_uploads(Bucket=BUCKET, Prefix="a/")["Uploads"]) == 2
    for key, uploads in begun.items():
        for upload in uploads:
            s3.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)
    assert refusal(client(server, OTHER).list_multipart_uploads, Bucket=BUCKET) == ("AccessDenied", 403)
