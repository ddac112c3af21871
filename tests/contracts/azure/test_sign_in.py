"""Signing in over TLS: azure-identity gets a token for an access key, and the resource manager accepts it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.identity import ClientSecretCredential
from azure.mgmt.eventgrid import EventGridManagementClient, models

from tests.services.server import Server, new_key, new_server

ACCOUNT: Final = "123456789012"
TENANT: Final = "11111111-1111-1111-1111-111111111111"
OWN: Final = f"00000000-0000-0000-0000-{ACCOUNT}"
OTHERS: Final = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A store with an access key in it: the store's file, the key's id and its secret."""
    file = tmp_path_factory.mktemp("signed") / "redrive.db"
    return file, *new_key(f"sqlite:///{file}", ACCOUNT)


@pytest.fixture(scope="module")
def server(key: tuple[Path, str, str]) -> Iterator[Server]:
    """A server that answers nobody without a token, with a certificate of its own making."""
    file, _, _ = key
    server = new_server(f"sqlite:///{file}", "--auth", "required", "--tls", "auto", directory=file.parent)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def trusted(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server's authority, which all clients trust."""
    file = str(server.log.parent / "redrive-tls" / "authority.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", file)
    return file


def client(server: Server, key_id: str, secret: str, subscription: str = OWN) -> Any:
    credential = ClientSecretCredential(
        TENANT, key_id, secret, authority=server.url, disable_instance_discovery=True
    )
    return EventGridManagementClient(
        credential,
        subscription,
        base_url=server.url,
        credential_scopes=[f"{server.url}/.default"],
        retry_total=0,
    )


def test_an_access_key_manages_its_accounts_subscription(
    server: Server, key: tuple[Path, str, str], trusted: str
) -> None:
    _, key_id, secret = key
    with client(server, key_id, secret) as mine:
        topic = mine.topics.begin_create_or_update("rg", "orders", models.Topic(location="local")).result()
        assert topic.id.startswith(f"/subscriptions/{OWN}/")
        assert topic.endpoint.startswith(server.url)
    with client(server, key_id, secret, OTHERS) as others:
        with pytest.raises(HttpResponseError) as refusal:
            list(others.topics.list_by_subscription())
        assert (refusal.value.status_code, refusal.value.error.code) == (403, "AuthorizationFailed")


def test_documents_that_name_another_callers_resources_are_refused(
    server: Server, key: tuple[Path, str, str], trusted: str
) -> None:
    _, key_id, secret = key
    theirs = f"/subscriptions/{OTHERS}/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/letters"
    queue = models.WebHookEventSubscriptionDestination(endpoint_url="arn:aws:sqs:us-east-1:000000000000:q")
    with client(server, key_id, secret) as mine:
        topic = mine.topics.begin_create_or_update("rg", "orders", models.Topic(location="local")).result()
        system_topic = models.SystemTopic(location="local", source=theirs)
        letters = models.StorageBlobDeadLetterDestination(resource_id=theirs, blob_container_name="dead")
        own = models.WebHookEventSubscriptionDestination(endpoint_url=f"arn:aws:sqs:us-east-1:{ACCOUNT}:q")
        refusals = [
            lambda: mine.system_topics.begin_create_or_update("rg", "theirs", system_topic),
            lambda: mine.event_subscriptions.begin_create_or_update(
                topic.id,
                "theirs",
                models.EventSubscription(destination=own, dead_letter_destination=letters),
            ),
            lambda: mine.event_subscriptions.get(theirs, "billing"),
        ]
        for call in refusals:
            with pytest.raises(HttpResponseError) as refusal:
                call()
            assert (refusal.value.status_code, refusal.value.error.code) == (403, "AuthorizationFailed")
        with pytest.raises(HttpResponseError, match="does not exist at this server"):
            mine.event_subscriptions.begin_create_or_update(
                topic.id, "theirs", models.EventSubscription(destination=queue)
            )


def test_a_wrong_secret_gets_no_token(server: Server, key: tuple[Path, str, str], trusted: str) -> None:
    _, key_id, secret = key
    for given in ((key_id, f"{secret}x"), ("nobody", secret)):
        with client(server, *given) as mine, pytest.raises(ClientAuthenticationError, match="AADSTS7000215"):
            list(mine.topics.list_by_subscription())


def test_no_token_and_a_forged_one(server: Server, key: tuple[Path, str, str], trusted: str) -> None:
    _, key_id, secret = key
    form = {"grant_type": "client_credentials", "client_id": key_id, "client_secret": secret}
    token = requests.post(f"{server.url}/{TENANT}/oauth2/token", form, timeout=10).json()["access_token"]
    url = f"{server.url}/subscriptions"
    answers = [
        requests.get(url, headers={"Authorization": said} if said else {}, timeout=10)
        for said in ("", f"Bearer {token}", f"Bearer {token[:-4]}AAAA", "Bearer x", f"Basic {token}")
    ]
    assert [answer.status_code for answer in answers] == [401, 200, 401, 401, 401]
    (subscription,) = answers[1].json()["value"]
    assert subscription["subscriptionId"] == OWN
    assert answers[0].json()["error"]["code"] == "AuthenticationFailed"


def test_sign_in_metadata_points_at_this_server(server: Server, trusted: str) -> None:
    cloud = requests.get(f"{server.url}/metadata/endpoints?api-version=2022-09-01", timeout=10).json()
    assert cloud["authentication"]["loginEndpoint"] == server.url
    assert cloud["resourceManager"] == f"{server.url}/"
    place = f"{server.url}/{TENANT}/v2.0/.well-known/openid-configuration"
    configuration = requests.get(place, timeout=10).json()
    assert configuration["token_endpoint"] == f"{server.url}/{TENANT}/oauth2/v2.0/token"
    refusal = requests.post(configuration["token_endpoint"], {"grant_type": "password"}, timeout=10)
    assert (refusal.status_code, refusal.json()["error"]) == (400, "unsupported_grant_type")
