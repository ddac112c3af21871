"""The server's own storage accounts: their keys by the resource manager, their containers by azure-storage-blob."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
import requests
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.identity import ClientSecretCredential
from azure.storage.blob import BlobServiceClient

from redrive.azure.arm.storage import BLOBS
from tests.services.server import Server, new_key, new_server

ACCOUNTS: Final = ("123456789012", "210987654321")


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

    def accounts(self) -> list[dict[str, Any]]:
        """The storage accounts of the subscription."""
        path = f"/subscriptions/{self._subscription}/providers/Microsoft.Storage/storageAccounts"
        authorization = {"Authorization": f"Bearer {self._token}"}
        url = f"{self._server.url}{path}?api-version=2023-05-01"
        found: list[dict[str, Any]] = requests.get(url, headers=authorization, timeout=30).json()["value"]
        return found

    def blobs_by_token(self) -> BlobServiceClient:
        """The Blob service of the account, by a token of the access key."""
        url = f"{self._server.url}{BLOBS}letters"
        return BlobServiceClient(url, credential=self._credential, retry_total=0)

    def blobs(self, key: str = "") -> BlobServiceClient:
        """The Blob service of the account, by its first key or another."""
        key = key or self.ask("POST", "/listKeys")[1]["keys"][0]["value"]
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


def test_blobs_are_not_offered(owners: list[Owner]) -> None:
    with pytest.raises(HttpResponseError) as refusal:
        owners[0].blobs().get_container_client("dead").upload_blob("letter", b"text")
    assert refusal.value.status_code in (400, 404)


def test_the_blob_service_of_no_account_is_not_found(tmp_path: Path) -> None:
    server = new_server("sqlite://:memory:", directory=tmp_path)
    server.start()
    try:
        assert server.ask("GET", "/_storage/no..name/dead?restype=container")[0] == 404
        assert server.ask("GET", "/_storage/letters/?comp=list")[0] == 200
    finally:
        server.stop()
