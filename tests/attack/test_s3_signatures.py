"""Links and requests to S3 that were changed after they were signed, in both versions of its signature."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from botocore.config import Config

from tests.attack.forging import Draft, Key, send, signed
from tests.services.server import Server

PRIVATE = b"what nobody else may read"
BUCKET, KEY = "guarded-bucket", "folder/letter"

Change = Callable[[Draft], Draft]


class Owner:
    """Somebody who has an object, and gives links to it."""

    def __init__(self, server: Server, key: Key) -> None:
        self.server = server
        self._key = key
        self.s3 = self.client("s3v4")
        self.s3.create_bucket(Bucket=BUCKET)
        for name in (KEY, "folder/other"):
            self.s3.put_object(Bucket=BUCKET, Key=name, Body=PRIVATE)

    def client(self, version: str, url: str = "") -> Any:
        """With paths, or with hosts at another URL."""
        config = Config(signature_version=version, s3={"addressing_style": "virtual" if url else "path"})
        return boto3.client(
            "s3",
            region_name="us-east-1",
            endpoint_url=url or self.server.url,
            aws_access_key_id=self._key[0],
            aws_secret_access_key=self._key[1],
            config=config,
        )

    def link(self, version: str, operation: str = "get_object", seconds: int = 60, **params: str) -> Draft:
        """A presigned URL as a request."""
        method = {"get_object": "GET", "put_object": "PUT", "head_object": "HEAD"}[operation]
        url = self.client(version).generate_presigned_url(
            operation, Params={"Bucket": BUCKET, "Key": KEY, **params}, ExpiresIn=seconds
        )
        parts = urlsplit(url)
        return Draft(method, f"{parts.path}?{parts.query}", (("Host", parts.netloc),))


@pytest.fixture(scope="module")
def owner(strict: Server, key: Key) -> Iterator[Owner]:
    owner = Owner(strict, key)
    yield owner
    owner.s3.close()


def without(name: str) -> Change:
    def change(draft: Draft) -> Draft:
        path, _, query = draft.target.partition("?")
        kept = [field for field in query.split("&") if not field.startswith(f"{name}=")]
        assert len(kept) == query.count("&")
        return draft.queried(draft.target, f"{path}?{'&'.join(kept)}")

    return change


def moved_by(name: str, value: str) -> Change:
    return lambda draft: without(name)(draft).queried("?", f"?{name}={value}&")


BOTH: dict[str, Change] = {
    "another object": lambda d: d.queried("folder/letter", "folder/other"),
    "another object, by dots": lambda d: d.queried("folder/letter", "folder/letter/../other"),
    "another bucket": lambda d: d.queried(BUCKET, "another-bucket"),
    "the bucket by a host": lambda d: d.having(
        Host=f"folder.s3.localhost:{d.header('host').partition(':')[2]}"
    ),
    "another method": lambda d: Draft("DELETE", d.target, d.headers),
    "a body": lambda d: Draft("PUT", d.target, d.headers, b"mine"),
    "the answer's type": lambda d: Draft(
        d.method, f"{d.target}&response-content-type=text%2Fhtml", d.headers
    ),
    "a header of Amazon's": lambda d: d.adding(X_Amz_Copy_Source=f"{BUCKET}/folder/other"),
}
OF_VERSION_4: dict[str, Change] = {
    **BOTH,
    "no signature": without("X-Amz-Signature"),
    "a longer life": moved_by("X-Amz-Expires", "6000"),
    "another key": lambda d: d.queried("X-Amz-Credential=AKIA", "X-Amz-Credential=AKIB"),
    "another service": lambda d: d.queried("%2Fs3%2F", "%2Fsqs%2F"),
}
OF_VERSION_2: dict[str, Change] = {
    **BOTH,
    "no signature": without("Signature"),
    "a longer life": moved_by("Expires", "1999999999"),
    "no end": without("Expires"),
    "another key": lambda d: d.queried("AWSAccessKeyId=AKIA", "AWSAccessKeyId=AKIB"),
    "an action of another service": lambda d: d.queried("?", "?Action=ListQueues&"),
}


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_a_link_opens_its_object(owner: Owner, version: str) -> None:
    assert send(owner.server, owner.link(version)) == (200, PRIVATE)


@pytest.mark.parametrize("change", OF_VERSION_4.values(), ids=OF_VERSION_4)
def test_a_changed_link_opens_nothing(owner: Owner, change: Change) -> None:
    status, answer = send(owner.server, change(owner.link("s3v4")))
    assert 400 <= status < 500, answer
    assert PRIVATE not in answer
    assert owner.s3.get_object(Bucket=BUCKET, Key=KEY)["Body"].read() == PRIVATE


@pytest.mark.parametrize("change", OF_VERSION_2.values(), ids=OF_VERSION_2)
def test_a_changed_link_of_the_older_version_opens_nothing(owner: Owner, change: Change) -> None:
    status, answer = send(owner.server, change(owner.link("s3")))
    assert 400 <= status < 500, answer
    assert PRIVATE not in answer
    assert owner.s3.get_object(Bucket=BUCKET, Key=KEY)["Body"].read() == PRIVATE


@pytest.mark.parametrize(
    "parameter", ["encryption", "ownershipControls", "policyStatus", "publicAccessBlock"]
)
def test_a_link_of_the_older_version_becomes_no_other_operation(owner: Owner, parameter: str) -> None:
    client = owner.client("s3", f"http://s3.localhost:{urlsplit(owner.server.url).port}")
    url = urlsplit(client.generate_presigned_url("list_objects", Params={"Bucket": BUCKET}))
    link = Draft("GET", f"{url.path}?{url.query}", (("Host", url.netloc),))
    assert send(owner.server, link)[0] == 200
    status, answer = send(owner.server, link.queried("?", f"?{parameter}&"))
    assert (status, b"SignatureDoesNotMatch" in answer) == (403, True), answer
    client.close()


@pytest.mark.parametrize(
    "parameter",
    [
        "x-amz-meta-a=%0D%0ASet-Cookie:%20a=b",
        "x-amz-meta-a=%0A",
        "x-amz-meta-a=%E2%82%AC",
        "x-amz-meta-a%0A=b",
    ],
)
def test_a_parameter_that_no_header_can_have_is_not_stored(owner: Owner, key: Key, parameter: str) -> None:
    """Each download would be an exception of the server's."""
    unsigned = {"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}
    target = f"/{BUCKET}/named?{parameter}"
    request = signed(owner.server, key, b"", unsigned, method="PUT", target=target, service="s3")
    status, answer = send(owner.server, request)
    assert (status, b"InvalidArgument" in answer) == (400, True), answer


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_a_link_for_no_time_opens_nothing(owner: Owner, version: str) -> None:
    status, answer = send(owner.server, owner.link(version, seconds=-30))
    assert (400 <= status < 500, PRIVATE in answer) == (True, False)


def test_an_object_of_another_account_is_not_ours(owner: Owner, strict: Server, other_key: Key) -> None:
    stranger = boto3.client(
        "s3",
        region_name="us-east-1",
        endpoint_url=strict.url,
        aws_access_key_id=other_key[0],
        aws_secret_access_key=other_key[1],
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )
    for call in (stranger.get_object, stranger.delete_object, stranger.head_object):
        with pytest.raises(stranger.exceptions.ClientError, match=r"403|AccessDenied"):
            call(Bucket=BUCKET, Key=KEY)
    with pytest.raises(stranger.exceptions.ClientError, match="AccessDenied"):
        stranger.put_object(Bucket=BUCKET, Key=KEY, Body=b"mine")
    assert stranger.list_buckets()["Buckets"] == []
    stranger.close()
    assert owner.s3.get_object(Bucket=BUCKET, Key=KEY)["Body"].read() == PRIVATE
