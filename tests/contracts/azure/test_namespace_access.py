"""`--auth required`: a namespace is opened by its keys, its topics' keys, and those who manage its subscription."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import HeadersPolicy
from azure.mgmt.eventgrid import EventGridManagementClient

from tests.contracts.azure.namespaces import ACCOUNT, GROUP, NAME, Shop, management, orders, placed, tokens
from tests.services.server import Server, new_key, serving

OURS, THEIRS = "000000000000", "100000000000"


@pytest.fixture(scope="module")
def strict(run_directory: Path) -> Iterator[Server]:
    store = f"sqlite:///{run_directory}/strict-namespaces.db"
    with serving(store, "--auth", "required", directory=run_directory) as server:
        yield server


def token(server: Server, account: str) -> str:
    """A token of somebody with an access key of the account."""
    key_id, secret = new_key(server.store, account)
    form = {"grant_type": "client_credentials", "client_id": key_id, "client_secret": secret}
    headers = {"content-type": "application/x-www-form-urlencoded"}
    _, answer = server.ask("POST", "/any/oauth2/v2.0/token", urlencode(form).encode(), headers)
    issued: str = orjson.loads(answer)["access_token"]
    return issued


def bearing(bearer: str) -> Any:
    return HeadersPolicy({"Authorization": f"Bearer {bearer}"})


@pytest.fixture(scope="module")
def ours(strict: Server) -> str:
    return token(strict, OURS)


@pytest.fixture
def shop(strict: Server, ours: str) -> Iterator[Shop]:
    shop = Shop(strict)
    shop.management = management(strict.url, bearing(ours))
    shop.open()
    shop.subscribe()
    yield shop
    shop.management.namespaces.begin_delete(GROUP, NAME).result()
    shop.management.close()
    shop.close()


@pytest.mark.parametrize("which", ["key1", "key2"])
@pytest.mark.parametrize("of", ["namespace", "topic"])
def test_each_key_of_namespace_and_topic_is_accepted(shop: Shop, of: str, which: str) -> None:
    manager: EventGridManagementClient = shop.management
    keys = (
        manager.namespaces.list_shared_access_keys(GROUP, NAME)
        if of == "namespace"
        else manager.namespace_topics.list_shared_access_keys(GROUP, NAME, "orders")
    )
    key = getattr(keys, which)
    shop.publisher(key).send(placed(1))
    consumer = shop.consumer(key=key)
    received = consumer.receive()
    assert orders(received) == [1]
    assert consumer.acknowledge(lock_tokens=tokens(received)).failed_lock_tokens == []


def test_other_keys_are_refused(shop: Shop) -> None:
    with pytest.raises(ClientAuthenticationError):
        shop.publisher("bm90IGEga2V5").send(placed(1))
    with pytest.raises(ClientAuthenticationError):
        shop.consumer(key="bm90IGEga2V5").receive()


def test_a_renewed_key_opens_it_no_more(shop: Shop) -> None:
    manager: EventGridManagementClient = shop.management
    old = manager.namespaces.list_shared_access_keys(GROUP, NAME).key1
    new = manager.namespaces.begin_regenerate_key(GROUP, NAME, {"keyName": "key1"}).result().key1
    shop.publisher(new).send(placed(1))
    with pytest.raises(ClientAuthenticationError):
        shop.publisher(old).send(placed(1))


@pytest.mark.parametrize("authorization", [None, "SharedAccessKey ", "SharedAccessKey", "Basic eDp5"])
def test_a_publication_without_a_usable_key_is_refused(shop: Shop, authorization: str | None) -> None:
    path = f"{shop.endpoint.removeprefix(shop.server.url)}/topics/orders:publish"
    headers = {"content-type": "application/cloudevents-batch+json"}
    if authorization is not None:
        headers["authorization"] = authorization
    status, answer = shop.server.ask("POST", path, b"[]", headers)
    assert (status, orjson.loads(answer)["error"]["code"]) == (401, "Unauthorized")


def test_a_bearer_who_manages_the_subscription_may_come_in(shop: Shop, ours: str) -> None:
    path = f"{shop.endpoint.removeprefix(shop.server.url)}/topics/orders:publish"
    content_type = {"content-type": "application/cloudevents-batch+json"}
    for bearer, status in ((ours, 200), (token(shop.server, THEIRS), 401), ("nonsense", 401)):
        headers = content_type | {"authorization": f"Bearer {bearer}"}
        assert shop.server.ask("POST", path, b"[]", headers)[0] == status


def test_an_unauthorized_publisher_cannot_tell_whether_a_topic_exists(shop: Shop) -> None:
    with pytest.raises(ClientAuthenticationError):
        shop.publisher("bm90IGEga2V5", topic="nothing").send(placed(1))
    key = shop.management.namespaces.list_shared_access_keys(GROUP, NAME).key1
    with pytest.raises(ResourceNotFoundError):
        shop.publisher(key, topic="nothing").send(placed(1))


def test_dead_letters_go_to_an_account_of_the_callers_own(shop: Shop) -> None:
    theirs = ACCOUNT.replace(OURS, THEIRS)
    with pytest.raises(HttpResponseError) as refusal:
        shop.subscribe("shipping", letters=True, account=theirs)
    assert refusal.value.status_code == 403
    shop.subscribe("shipping", letters=True)
