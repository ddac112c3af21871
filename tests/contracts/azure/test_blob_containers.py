"""The server's own storage accounts: keys by the resource manager, containers and blobs by azure-storage-blob."""

import functools
import os
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import orjson
import pytest
import requests
from azure.core import MatchConditions
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.identity import ClientSecretCredential
from azure.storage.blob import (
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from redrive.azure.recognise import BLOBS
from tests.services.server import Server, new_key, new_server

ACCOUNTS: Final = ("123456789012", "210987654321")
LETTERS: Final = {
    "orders/1/a.json": b'[{"id": "e-1"}]' * 200,
    "orders/2/b.json": b"[]",
    "readme": b"dead letters",
}


class Owner:
    """Somebody with an access key, at the resource manager."""

    def __init__(self, server: Server, account: str, key_id: str, secret: str) -> None:
        self._server = server
        self._subscription = f"00000000-0000-0000-0000-{account}"
        credential = ClientSecretCredential(
            "11111111-1111-1111-1111-111111111111",
            key_id,
            secret,
            authority=server.url,
            disable_instance_discovery=True,
        )
        self._key = key_id, secret
        self._credential = credential
        self._token = credential.get_token(f"{server.url}/.default").token

    def ask(self, method: str, path: str) -> tuple[int, Any]:
        """A call about the storage account `letters`; status and JSON."""
        group = f"/subscriptions/{self._subscription}/resourceGroups/rg/providers/Microsoft.Storage"
        path = f"{group}/storageAccounts/letters{path}?api-version=2023-05-01"
        authorization = {"Authorization": f"Bearer {self._token}"}
        answer = requests.request(
            method, f"{self._server.url}{path}", data=b"{}", headers=authorization, timeout=30
        )
        return answer.status_code, orjson.loads(answer.content or b"null")

    def send_dead_letters(self) -> tuple[int, Any]:
        """Make an event subscription whose dead letters go to `letters`, said to be one's own; status and JSON."""
        group = f"/subscriptions/{self._subscription}/resourceGroups/rg/providers"
        topic = f"{group}/Microsoft.EventGrid/topics/topic"
        account, (key_id, secret) = self._subscription.rpartition("-")[2], self._key
        place = {
            "endpoint_url": self._server.url,
            "region_name": "us-east-1",
            "verify": os.environ["SSL_CERT_FILE"],
        }
        sqs = boto3.client("sqs", aws_access_key_id=key_id, aws_secret_access_key=secret, **place)
        sqs.create_queue(QueueName="q")
        queue = {"endpointUrl": f"arn:aws:sqs:us-east-1:{account}:q"}
        store = {
            "resourceId": f"{group}/Microsoft.Storage/storageAccounts/letters",
            "blobContainerName": "dead",
        }
        properties = {
            "destination": {"endpointType": "WebHook", "properties": queue},
            "deadLetterDestination": {"endpointType": "StorageBlob", "properties": store},
        }
        made = {"location": "local"}, {"properties": properties}
        answers = [
            requests.put(
                f"{self._server.url}{path}?api-version=2022-06-15",
                json=document,
                headers={"Authorization": f"Bearer {self._token}"},
                timeout=30,
            )
            for path, document in zip(
                (topic, f"{topic}/providers/Microsoft.EventGrid/eventSubscriptions/sub"), made, strict=True
            )
        ]
        return answers[-1].status_code, answers[-1].json()

    def accounts(self) -> list[dict[str, Any]]:
        """The storage accounts of the subscription."""
        path = f"/subscriptions/{self._subscription}/providers/Microsoft.Storage/storageAccounts"
        authorization = {"Authorization": f"Bearer {self._token}"}
        url = f"{self._server.url}{path}?api-version=2023-05-01"
        found: list[dict[str, Any]] = requests.get(url, headers=authorization, timeout=30).json()["value"]
        return found

    @property
    def key(self) -> str:
        """The account's first key."""
        key: str = self.ask("POST", "/listKeys")[1]["keys"][0]["value"]
        return key

    @property
    def folder(self) -> Path:
        """The blob store."""
        return self._server.log.parent / "redrive-blobs"

    def blobs_by_token(self) -> BlobServiceClient:
        """The Blob service of the account, by a token of the access key."""
        url = f"{self._server.url}{BLOBS}letters"
        return BlobServiceClient(url, credential=self._credential, retry_total=0)

    def blobs(self, key: str = "") -> BlobServiceClient:
        """The Blob service of the account, by its first key or another."""
        key = key or self.key
        endpoint = self.ask("GET", "")[1]["properties"]["primaryEndpoints"]["blob"]
        text = f"AccountName=letters;AccountKey={key};BlobEndpoint={endpoint}"
        return BlobServiceClient.from_connection_string(text, retry_total=0)


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Owner]]:
    """Two, with an account each, at a server that asks for credentials; over plain HTTP no client would sign in."""
    directory = tmp_path_factory.mktemp("signed")
    store = f"sqlite:///{directory}/redrive.db"
    keys = [new_key(store, account) for account in ACCOUNTS]
    server = new_server(store, "--auth", "required", "--tls", "auto", directory=directory)
    server.start()
    with pytest.MonkeyPatch.context() as patched:
        authority = directory / "redrive-tls" / "authority.pem"
        patched.setenv("REQUESTS_CA_BUNDLE", str(authority))
        patched.setenv("SSL_CERT_FILE", str(authority))
        yield [Owner(server, account, *key) for account, key in zip(ACCOUNTS, keys, strict=True)]
    server.stop()


def test_containers_are_made_listed_and_removed_with_a_key(owners: list[Owner]) -> None:
    blobs = owners[0].blobs()
    container = blobs.create_container("dead")
    assert container.exists()
    with pytest.raises(ResourceExistsError):
        blobs.create_container("dead")
    blobs.create_container("deals")
    assert [one.name for one in blobs.list_containers()] == ["dead", "deals"]
    assert [one.name for one in blobs.list_containers(name_starts_with="deal")] == ["deals"]
    blobs.delete_container("deals")
    assert not blobs.get_container_client("deals").exists()
    with pytest.raises(ResourceNotFoundError):
        blobs.delete_container("deals")
    status, shown = owners[0].ask("GET", "/blobServices/default/containers")
    assert (status, [one["name"] for one in shown["value"]]) == (200, ["dead"])


def test_both_keys_open_an_account_and_no_other_does(owners: list[Owner]) -> None:
    for key in owners[0].ask("POST", "/listKeys")[1]["keys"]:
        assert owners[0].blobs(key["value"]).get_container_client("none").exists() is False
    wrong = owners[0].blobs(b64encode(b"x" * 64).decode())
    with pytest.raises(ClientAuthenticationError):
        wrong.create_container("others")


def test_dead_letters_go_to_the_accounts_of_who_sends_them_there(owners: list[Owner]) -> None:
    owners[0].ask("PUT", "")
    first = owners[0].send_dead_letters()
    assert first[0] == 201, first
    status, refusal = owners[1].send_dead_letters()
    assert (status, refusal["error"]["code"]) == (409, "StorageAccountAlreadyTaken")


def test_a_token_opens_the_accounts_of_its_key_and_no_others(owners: list[Owner]) -> None:
    owners[0].ask("PUT", "")
    theirs = owners[0].blobs_by_token()
    assert theirs.create_container("by-token").exists()
    theirs.delete_container("by-token")
    assert [one["name"] for one in owners[0].accounts()] == ["letters"]
    assert owners[1].accounts() == []
    with pytest.raises(HttpResponseError) as refusal:
        owners[1].blobs_by_token().create_container("by-token")
    assert (refusal.value.status_code, refusal.value.error_code) == (409, "StorageAccountAlreadyTaken")


def test_an_account_has_a_host_of_its_own_where_names_lead_to_the_server(tmp_path: Path) -> None:
    server = new_server("sqlite://:memory:", "--allow-host", "letters.blob.example.com", directory=tmp_path)
    server.start()
    host = {"Host": "letters.blob.example.com"}
    try:
        assert server.ask("PUT", "/dead?restype=container", headers=host)[0] == 201
        assert server.ask("HEAD", "/_storage/letters/dead?restype=container")[0] == 200
        assert server.ask("GET", "/other?restype=container", headers=host)[0] == 404
        assert b"<Name>dead</Name>" in server.ask("GET", "/?comp=list", headers=host)[1]
        described = server.ask("GET", "/metadata/endpoints", headers={"Host": "localhost:4566"})[1]
        assert orjson.loads(described)["suffixes"]["storage"] == "localhost:4566"
    finally:
        server.stop()


def test_an_account_that_belongs_to_another_is_not_shown_opened_or_emptied(owners: list[Owner]) -> None:
    owners[0].ask("PUT", "")
    for method, path in (
        ("GET", ""),
        ("POST", "/listKeys"),
        ("DELETE", "/blobServices/default/containers/dead"),
    ):
        status, answer = owners[1].ask(method, path)
        assert (status, answer["error"]["code"]) == (409, "StorageAccountAlreadyTaken")


@pytest.fixture
def letters(owners: list[Owner], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerClient]:
    """A container with three blobs, as the server writes dead letters."""
    container = owners[0].blobs().create_container("letters")
    for name, content in LETTERS.items():
        path = owners[0].folder / "letters" / "letters" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    yield container
    container.delete_container()


def test_blobs_are_listed_by_pages_folders_and_beginnings(letters: ContainerClient) -> None:
    listed = list(letters.list_blobs(results_per_page=2))
    assert [(blob.name, blob.size) for blob in listed] == [
        (name, len(content)) for name, content in LETTERS.items()
    ]
    assert {blob.blob_type.value for blob in listed} == {"BlockBlob"}
    assert all(blob.last_modified.year >= 2020 and blob.etag for blob in listed)
    assert [blob.name for blob in letters.list_blobs(name_starts_with="orders/2")] == ["orders/2/b.json"]
    assert [each.name for each in letters.walk_blobs()] == ["orders/", "readme"]
    assert [each.name for each in letters.walk_blobs("orders/", results_per_page=1)] == [
        "orders/1/",
        "orders/2/",
    ]


def test_blobs_are_read_whole_in_ranges_and_under_conditions(letters: ContainerClient) -> None:
    blob = letters.get_blob_client("orders/1/a.json")
    content = LETTERS["orders/1/a.json"]
    shown = blob.get_blob_properties()
    assert (shown.size, shown.content_settings.content_type) == (len(content), "application/json")
    assert blob.download_blob().readall() == content
    assert blob.download_blob(offset=3, length=4).readall() == content[3:7]
    assert blob.download_blob(validate_content=True).readall() == content
    small = BlobClient.from_blob_url(
        blob.url, blob.credential, max_single_get_size=1000, max_chunk_get_size=700
    )
    assert small.download_blob().readall() == content
    with pytest.raises(HttpResponseError) as beyond:
        blob.download_blob(offset=len(content)).readall()
    assert (beyond.value.status_code, beyond.value.error_code) == (416, "InvalidRange")
    with pytest.raises(ResourceModifiedError):
        blob.download_blob(etag="other", match_condition=MatchConditions.IfNotModified)


def test_of_two_conditions_of_a_change_one_is_enough(letters: ContainerClient) -> None:
    """Either that did not hold was answered with 304, and of several ETags none was recognised."""
    blob = letters.get_blob_client("readme")
    shown = blob.get_blob_properties()
    since = {"if_modified_since": shown.last_modified}
    before = {"if_modified_since": shown.last_modified - timedelta(days=1)}
    other = {"etag": '"other"', "match_condition": MatchConditions.IfModified}
    same = {"etag": f'"other", {shown.etag}', "match_condition": MatchConditions.IfModified}
    for conditions in ({**other, **since}, {**same, **before}):
        assert blob.download_blob(**conditions).readall() == LETTERS["readme"]
    for conditions in (since, same, {**same, **since}):
        with pytest.raises(HttpResponseError) as unchanged:
            blob.download_blob(**conditions)
        assert unchanged.value.status_code == 304
    with pytest.raises(ResourceModifiedError):
        blob.download_blob(**{**other, **since, "match_condition": MatchConditions.IfNotModified})


def test_a_blob_is_deleted_once_and_none_is_written(letters: ContainerClient) -> None:
    blob = letters.get_blob_client("readme")
    blob.delete_blob()
    assert not blob.exists()
    with pytest.raises(ResourceNotFoundError) as refusal:
        blob.delete_blob()
    assert refusal.value.error_code == "BlobNotFound"
    with pytest.raises(ResourceNotFoundError):
        letters.download_blob("orders")
    with pytest.raises(HttpResponseError):
        letters.upload_blob("letter", b"text")
    assert [each.name for each in letters.list_blobs()] == ["orders/1/a.json", "orders/2/b.json"]


def test_shared_access_signatures_allow_what_they_say(owners: list[Owner], letters: ContainerClient) -> None:
    soon, past = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (10, -10))
    key = owners[0].key
    blob = letters.get_blob_client("readme")
    of_blob: Any = functools.partial(generate_blob_sas, "letters", "letters", "readme", account_key=key)
    of_container: Any = functools.partial(generate_container_sas, "letters", "letters", account_key=key)
    of_account: Any = functools.partial(generate_account_sas, "letters", key)
    reads = of_blob(permission="r", expiry=soon)
    assert BlobClient.from_blob_url(blob.url, reads).download_blob().readall() == LETTERS["readme"]
    url = blob.url
    for allowed in (
        of_container(permission="r", expiry=soon),
        of_account(resource_types=ResourceTypes(object=True), permission="r", expiry=soon),
        of_blob(permission="r", expiry=soon, start=past, ip="127.0.0.1", protocol="https"),
    ):
        assert BlobClient.from_blob_url(url, allowed).exists()
    for denied in (
        of_blob(permission="d", expiry=soon),
        of_blob(permission="r", expiry=past),
        of_blob(permission="r", expiry=soon, ip="127.0.0.2-127.0.0.9"),
        of_account(resource_types=ResourceTypes(container=True), permission="r", expiry=soon),
        reads.replace("sp=r", "sp=rd"),
        f"{reads[:-6]}AAA%3D",
    ):
        with pytest.raises(ClientAuthenticationError):
            BlobClient.from_blob_url(url, denied).get_blob_properties()
    with pytest.raises(ClientAuthenticationError):
        BlobClient.from_blob_url(url, reads).delete_blob()
    other = BlobClient.from_blob_url(letters.get_blob_client("orders/1/a.json").url, reads)
    with pytest.raises(ClientAuthenticationError):
        other.get_blob_properties()
    lists = ContainerClient.from_container_url(letters.url, of_container(permission="l", expiry=soon))
    assert len(list(lists.list_blobs())) == 3
    makes = of_account(resource_types=ResourceTypes(container=True), permission="c", expiry=soon)
    made = ContainerClient.from_container_url(
        letters.url.replace("/letters/letters", "/letters/by-signature"), makes
    )
    made.create_container()
    owners[0].blobs().delete_container("by-signature")


def test_an_account_describes_itself_and_its_service(owners: list[Owner]) -> None:
    blobs = owners[0].blobs()
    assert blobs.get_account_information()["account_kind"] == "StorageV2"
    assert blobs.get_service_properties()["cors"] == []


def test_the_blob_service_of_no_account_is_not_found(tmp_path: Path) -> None:
    server = new_server("sqlite://:memory:", directory=tmp_path)
    server.start()
    try:
        assert server.ask("GET", "/_storage/no..name/dead?restype=container")[0] == 404
        assert server.ask("GET", "/_storage/letters/?comp=list")[0] == 200
        assert server.ask("PUT", "/_storage/letters/dead?restype=container")[0] == 201
        for name in (
            "..%2F..%2F..%2Fredrive.db",
            "%2e%2e/%2e%2e/redrive.db",
            "a//b",
            "a%00b",
            "%0a",
            "a%5C..%5Cb",
        ):
            assert server.ask("GET", f"/_storage/letters/dead/{name}")[0] == 404
            listing = f"/_storage/letters/dead?restype=container&comp=list&prefix={name}&marker={name}"
            assert server.ask("GET", listing)[0] == 200
    finally:
        server.stop()
