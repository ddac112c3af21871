import asyncio
import contextlib
import errno
import itertools
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from redrive.endpoints.blob import BlobEndpoint, read_connection_string
from redrive.endpoints.blob_store import BlobStore
from redrive.endpoints.containers import BlobContainers
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.contracts.endpoints.kinds import IMPATIENCE_MS, NOW
from tests.contracts.endpoints.storage import (
    CONTAINER,
    PATH,
    blob_endpoint,
    blob_push,
    connection_string,
)
from tests.contracts.endpoints.webhook import Webhook, answer
from tests.services.azurite import RESOURCE, Azurite
from tests.services.server import serving

_NAMES = itertools.count()


def _files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def _folder_endpoint(folder: Path | str) -> BlobEndpoint:
    return BlobEndpoint(lambda: NOW, lambda _: None, str(folder))


# ---- a folder ----------------------------------------------------------------------------------------------------


async def test_a_folder_has_the_layout_of_the_account(tmp_path: Path) -> None:
    endpoint = _folder_endpoint(tmp_path / "not" / "yet")
    assert (await endpoint.push(blob_push("[1]"))).delivered
    assert _files(tmp_path) == {f"not/yet/teststore/letters/{PATH}": "[1]"}


async def test_a_folder_may_be_written_as_a_url(tmp_path: Path) -> None:
    assert (await _folder_endpoint(f"file://{tmp_path}").push(blob_push())).delivered
    assert (tmp_path / "teststore/letters" / PATH).exists()


async def test_a_blob_written_again_is_there_once(tmp_path: Path) -> None:
    endpoint = _folder_endpoint(tmp_path)
    for text in ("[1]", "[1, 2]"):
        assert (await endpoint.push(blob_push(text))).delivered
    assert list(_files(tmp_path).values()) == ["[1, 2]"]


async def test_a_container_that_is_required_has_to_be_there(tmp_path: Path) -> None:
    endpoint, push_request = _folder_endpoint(tmp_path), blob_push()
    required = replace(push_request, headers={**push_request.headers, "container": "required"})
    attempt = await endpoint.push(required)
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.REFUSED, Reason.MISSING, 404)
    assert attempt.response == "ContainerNotFound: teststore/letters does not exist."
    assert _files(tmp_path) == {}
    assert await BlobContainers(str(tmp_path)).make("TestStore", "letters")
    assert (await endpoint.push(required)).delivered


async def test_containers_of_a_folder_are_its_folders(tmp_path: Path) -> None:
    containers = BlobContainers(f"file://{tmp_path}/blobs")
    assert await containers.names("store") == []
    assert [await containers.make("store", name) for name in ("b", "a", "a")] == [True, True, False]
    assert await containers.names("store") == ["a", "b"]
    assert [await containers.remove("store", "a") for _ in range(2)] == [True, False]
    assert [await containers.is_there("store", name) for name in ("a", "b")] == [False, True]


async def test_a_bucket_has_every_container(tmp_path: Path) -> None:
    containers = BlobContainers("s3://bucket/prefix")
    assert await containers.is_there("store", "any")
    assert (await containers.make("store", "any"), await containers.remove("store", "any")) == (False, False)


async def test_file_and_folders_are_on_disk_before_it_is_a_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: settled.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
    )
    assert (await _folder_endpoint(tmp_path / "blobs").push(blob_push(path="A/b.json"))).delivered
    blobs = tmp_path / "blobs"
    ways = ["teststore/letters/A/b.json", "teststore/letters/A", "teststore/letters", "teststore"]
    assert settled == [*(str(blobs / way) for way in ways), str(blobs), str(tmp_path)]


async def test_a_disk_that_fails_to_keep_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    attempt = await _folder_endpoint(tmp_path).push(blob_push())
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.FULL)


async def test_a_folder_that_cannot_be_made_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    attempt = await _folder_endpoint(tmp_path / "file" / "folder").push(blob_push())
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.SERVER_ERROR)
    (tmp_path / "teststore").touch()
    attempt = await _folder_endpoint(tmp_path).push(blob_push())
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.SERVER_ERROR)


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/etc/x", "a//b", "a/.", "..", "", "a b", "a\0b", "ä", "a/"]
)
async def test_no_name_leads_out_of_the_container(tmp_path: Path, path: str) -> None:
    attempt = await _folder_endpoint(tmp_path / "blobs").push(blob_push(path=path))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
    assert not _files(tmp_path)


@pytest.mark.parametrize(
    "container",
    [
        RESOURCE,
        f"{RESOURCE}/blobServices/default/containers/..",
        f"{RESOURCE}/queueServices/default/queues/q",
        f"{CONTAINER}/blobs/b",
        "letters",
    ],
)
async def test_only_a_container_takes_blobs(tmp_path: Path, container: str) -> None:
    attempt = await _folder_endpoint(tmp_path).push(blob_push(container=container))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)


async def test_ids_are_read_without_regard_to_case(tmp_path: Path) -> None:
    assert (await _folder_endpoint(tmp_path).push(blob_push(container=CONTAINER.upper()))).delivered
    assert (tmp_path / "teststore/letters" / PATH).exists()


# ---- Azure -------------------------------------------------------------------------------------------------------


@pytest.fixture
def container(azurite: Azurite) -> ContainerClient:
    service = BlobServiceClient.from_connection_string(azurite.connection_string)
    return service.create_container(f"letters-{os.getpid()}-{next(_NAMES)}")


@pytest.fixture
async def azure(azurite: Azurite) -> AsyncIterator[BlobEndpoint]:
    endpoint = BlobEndpoint(lambda: NOW, lambda _: azurite.connection_string, "")
    yield endpoint
    await endpoint.close()


def _resource(name: str) -> str:
    return f"{RESOURCE}/blobServices/default/containers/{name}"


async def test_a_blob_as_its_owner_reads_it(azure: BlobEndpoint, container: ContainerClient) -> None:
    push_request = blob_push('[{"id": "ü"}]', container=_resource(container.container_name))
    attempt = await azure.push(replace(push_request, headers_kept=("etag", "content-length", "server")))
    blob = container.get_blob_client(PATH)
    properties = blob.get_blob_properties()
    kept = (("etag", properties.etag.strip('"')), ("content-length", str(properties.size)))
    assert attempt == Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 201, "", 0, kept)
    assert blob.download_blob().readall().decode() == '[{"id": "ü"}]'
    assert properties.content_settings.content_type == "application/json"
    assert properties.blob_type == "BlockBlob"


async def test_a_large_blob_is_written_whole(azure: BlobEndpoint, container: ContainerClient) -> None:
    text = "x" * 10_000_000
    assert (await azure.push(blob_push(text, container=_resource(container.container_name)))).delivered
    assert container.download_blob(PATH).readall() == text.encode()


async def test_a_container_that_is_not_there_is_not_tried_again(azure: BlobEndpoint) -> None:
    attempt = await azure.push(blob_push(container=_resource("nowhere")))
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.REFUSED, Reason.MISSING, 404)
    assert "ContainerNotFound" in attempt.response


async def test_a_wrong_key_may_be_mended(azurite: Azurite, container: ContainerClient) -> None:
    wrong = azurite.connection_string.replace("AccountKey=c2VjcmV0", "AccountKey=d3Jvbmc=")
    endpoint = BlobEndpoint(lambda: NOW, lambda _: wrong, "")
    attempt = await endpoint.push(blob_push(container=_resource(container.container_name)))
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.FAILED, Reason.DENIED, 403)


async def test_a_connection_string_without_an_account_refuses(hook: Webhook) -> None:
    endpoint = BlobEndpoint(lambda: NOW, lambda _: "AccountKey=c2VjcmV0", "")
    attempt = await endpoint.push(blob_push())
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
    assert "c2VjcmV0" not in attempt.response


# ---- what a service answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "result", "reason"),
    [
        ("400 Bad Request", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("401 Unauthorized", AttemptResult.FAILED, Reason.DENIED),
        ("403 Forbidden", AttemptResult.FAILED, Reason.DENIED),
        ("404 Not Found", AttemptResult.REFUSED, Reason.MISSING),
        ("409 Conflict", AttemptResult.FAILED, Reason.DISABLED),
        ("412 Precondition Failed", AttemptResult.FAILED, Reason.DISABLED),
        ("413 Payload Too Large", AttemptResult.REFUSED, Reason.TOO_LARGE),
        ("429 Too Many Requests", AttemptResult.FAILED, Reason.THROTTLED),
        ("500 Internal Server Error", AttemptResult.FAILED, Reason.SERVER_ERROR),
        ("503 Service Unavailable", AttemptResult.FAILED, Reason.SERVER_ERROR),
    ],
)
async def test_each_status_has_its_result_and_reason(
    hook: Webhook, status: str, result: AttemptResult, reason: Reason
) -> None:
    hook.say(answer(status, b"because:\n\n<of>: that"))
    endpoint = blob_endpoint(hook.url("/teststore"))
    attempt = await endpoint.push(blob_push())
    assert (attempt.result, attempt.reason, attempt.status) == (result, reason, int(status[:3]))
    assert attempt.response == "because:\n\n<of>: that"
    assert len(hook.received) == 1  # the schedule repeats, nobody else


async def test_no_signature_is_told_in_what_came_of_it(hook: Webhook) -> None:
    hook.say(answer("500 Oh", b"no"))
    service = f"BlobEndpoint={hook.url('/teststore')};SharedAccessSignature=sv=2023&sig=a%2Fsecret"
    endpoint = BlobEndpoint(lambda: NOW, lambda _: service, "")
    attempt = await endpoint.push(blob_push())
    assert "sig=a%2Fsecret" in hook.received[0].line
    assert "secret" not in attempt.response
    hook.script = _closing
    assert "secret" not in (await endpoint.push(blob_push())).response


async def _closing(_: object, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def test_s3_has_the_same_layout(hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    hook.say(answer("200 OK", b"", 'ETag: "1"'))
    for name, value in {
        "AWS_ENDPOINT_URL": hook.url(""),
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-north-1",
    }.items():
        monkeypatch.setenv(name, value)
    endpoint = _folder_endpoint("s3://bucket/dead")
    assert (await endpoint.push(blob_push("[1]"))).delivered
    (received,) = hook.received
    assert received.line == f"PUT /bucket/dead/teststore/letters/{PATH} HTTP/1.1"
    assert (received.body, received.headers["content-type"]) == (b"[1]", "application/json")
    hook.say(answer("404 Not Found", b"NoSuchBucket"))
    assert (await endpoint.push(blob_push())).reason is Reason.MISSING


async def test_a_time_out_leaves_the_next_blob_alone(hook: Webhook) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    hook.script = never
    endpoint = blob_endpoint(hook.url("/teststore"))
    attempt = await endpoint.push(blob_push(timeout_ms=IMPATIENCE_MS))
    assert attempt.reason is Reason.TIMED_OUT
    hook.say(answer("201 Created", b"", 'ETag: "1"'))
    assert (await endpoint.push(blob_push())).delivered


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("UseDevelopmentStorage=true", "http://127.0.0.1:10000/devstoreaccount1"),
        ("AccountName=a;AccountKey=aw==", "https://a.blob.core.windows.net"),
        (
            "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=aw==;EndpointSuffix=example.org;",
            "http://a.blob.example.org",
        ),
        (connection_string("http://127.0.0.1:1/x/"), "http://127.0.0.1:1/x"),
    ],
)
def test_a_connection_string_says_where_blobs_are(text: str, url: str) -> None:
    assert read_connection_string(text).blob_url == url


# ---- reading ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["folder", "bucket"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[BlobStore]:
    """A store with blobs, in a folder and in a bucket of S3."""
    with contextlib.ExitStack() as stack:
        url = str(tmp_path / "blobs")
        if request.param == "bucket":
            server = stack.enter_context(serving("sqlite://:memory:", directory=tmp_path))
            url = "s3://blobs/dead"
            for name, value in {
                "AWS_ENDPOINT_URL": server.url,
                "AWS_ACCESS_KEY_ID": "000000000000",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_REGION": "us-east-1",
            }.items():
                monkeypatch.setenv(name, value)
            boto3.client("s3", endpoint_url=server.url).create_bucket(Bucket="blobs")
        opened = BlobStore(url)
        for name in ("b/1/x", "b/2/y", "b/2/z", "b.c", "a"):
            await opened.put(f"account/container/{name}", name.encode())
        await opened.put("account/other/b", b"")
        yield opened
        await opened.close()


@pytest.mark.parametrize(
    ("prefix", "by_folder", "names"),
    [
        ("", False, ["a", "b.c", "b/1/x", "b/2/y", "b/2/z"]),
        ("", True, ["a", "b.c", "b/"]),
        ("b", True, ["b.c", "b/"]),
        ("b/", True, ["b/1/", "b/2/"]),
        ("b/2", False, ["b/2/y", "b/2/z"]),
        ("../", False, []),
    ],
)
async def test_a_container_is_listed_in_pages(
    store: BlobStore, prefix: str, by_folder: bool, names: list[str]
) -> None:
    for limit in (1, 2, 10):
        found, after = list[str](), ""
        while True:
            blobs, folders, after = await store.page(
                "account/container", prefix, after, limit, by_folder=by_folder
            )
            assert len(blobs) + len(folders) <= limit
            found += sorted([*(blob[0] for blob in blobs), *folders])
            if not after:
                break
        assert found == names


async def test_a_blob_is_described_read_and_removed(store: BlobStore) -> None:
    described = await store.describe("account/container", "b/1/x")
    assert described is not None
    name, size, modified_at, tag = described
    assert (name, size) == ("b/1/x", 5)
    assert modified_at > NOW
    assert tag
    assert await store.read("account/container/b/1/x", 2, 3) == b"1/x"
    await store.remove(["account/container/b/1/x", "account/container/absent"])
    assert await store.describe("account/container", "b/1/x") is None
    assert await store.describe("account/container", "../other/b") is None
