"""`--auth required`: a topic is opened by its keys, by what is signed with them, and by those who manage its group."""

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AzureKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.eventgrid import EventGridEvent, EventGridPublisherClient, generate_sas
from azure.mgmt.eventgrid import models

from tests.contracts.azure.grid import status_of
from tests.contracts.azure.namespaces import GROUP, management
from tests.contracts.azure.test_namespace_access import bearing, token
from tests.services.server import Server, serving

NAME = "orders"
EVENT = EventGridEvent("/orders/1", "Order.Placed", {"order": 1}, "1.0")


@pytest.fixture(scope="module")
def strict(run_directory: Path) -> Iterator[Server]:
    store = f"sqlite:///{run_directory}/strict-topics.db"
    with serving(store, "--auth", "required", directory=run_directory) as server:
        yield server


@pytest.fixture(scope="module")
def bearer(strict: Server) -> str:
    return token(strict, "000000000000")


@pytest.fixture
def manager(strict: Server, bearer: str) -> Iterator[Any]:
    with management(strict.url, bearing(bearer)) as manager:
        yield manager
        manager.topics.begin_delete(GROUP, NAME).result()


@pytest.fixture
def topic(manager: Any) -> Any:
    return manager.topics.begin_create_or_update(GROUP, NAME, models.Topic(location="local")).result()


def publish(topic: Any, credential: Any) -> int:
    """Publish; the status of the answer."""
    with EventGridPublisherClient(topic.endpoint, credential) as client:
        return status_of(lambda hook: client.send([EVENT], raw_response_hook=hook))


def in_an_hour() -> dt.datetime:
    return dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)


@pytest.mark.parametrize("which", ["key1", "key2"])
def test_each_key_opens_it_and_what_is_signed_with_it(manager: Any, topic: Any, which: str) -> None:
    key = getattr(manager.topics.list_shared_access_keys(GROUP, NAME), which)
    assert publish(topic, AzureKeyCredential(key)) == 200
    assert publish(topic, AzureSasCredential(generate_sas(topic.endpoint, key, in_an_hour()))) == 200


WRONG: list[Callable[[str], Any]] = [
    lambda _: AzureKeyCredential("bm90IGEga2V5"),
    lambda endpoint: AzureSasCredential(generate_sas(endpoint, "bm90IGEga2V5", in_an_hour())),
]


@pytest.mark.parametrize("credential", WRONG)
def test_publications_with_other_keys_are_refused(topic: Any, credential: Callable[[str], Any]) -> None:
    with pytest.raises(
        ClientAuthenticationError, match=r"The request authorization key is not authorized for 127\.0\.0\.1"
    ):
        publish(topic, credential(topic.endpoint))


def test_a_renewed_key_opens_it_no_more(manager: Any, topic: Any) -> None:
    old = manager.topics.list_shared_access_keys(GROUP, NAME).key1
    new = manager.topics.begin_regenerate_key(GROUP, NAME, {"keyName": "key1"}).result().key1
    publish(topic, AzureKeyCredential(new))
    with pytest.raises(ClientAuthenticationError):
        publish(topic, AzureKeyCredential(old))


def test_bearer_tokens_are_accepted_also_where_keys_are_disabled(
    strict: Server, manager: Any, topic: Any, bearer: str
) -> None:
    key = manager.topics.list_shared_access_keys(GROUP, NAME).key1
    changed = models.TopicUpdateParameters(disable_local_auth=True)
    manager.topics.begin_update(GROUP, NAME, changed).result()
    with pytest.raises(ClientAuthenticationError, match="Local authentication is disabled"):
        publish(topic, AzureKeyCredential(key))
    path = topic.endpoint.removeprefix(strict.url)
    assert strict.ask("POST", path, b"[]", {"Authorization": f"Bearer {bearer}"})[0] == 200
    stranger = token(strict, "123456789012")
    assert strict.ask("POST", path, b"[]", {"Authorization": f"Bearer {stranger}"})[0] == 401
    assert strict.ask("POST", path, b"[]")[0] == 401
