"""Event Grid from outside: names that can be told, tokens for other places, other tenants' queues, passwords shown."""

import base64
import datetime as dt
import hashlib
import hmac
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import pytest

from tests.attack.conftest import ACCOUNT, STRANGER
from tests.services.server import Server

GROUP = f"/subscriptions/00000000-0000-0000-0000-{ACCOUNT}/resourceGroups/rg"
GRID = f"{GROUP}/providers/Microsoft.EventGrid"
TOPIC = f"{GRID}/topics/orders"
DATA = f"/eventgrid/00000000-0000-0000-0000-{ACCOUNT}/rg"
OTHER_KEY = base64.b64encode(b"x" * 32).decode()


class Tenant:
    """Somebody with an access key, at the resource manager."""

    def __init__(self, server: Server, key: tuple[str, str]) -> None:
        self.server = server
        form = {"grant_type": "client_credentials", "client_id": key[0], "client_secret": key[1]}
        headers = {"content-type": "application/x-www-form-urlencoded"}
        _, answer = server.ask("POST", "/any/oauth2/v2.0/token", urlencode(form).encode(), headers)
        self._bearer = {"authorization": f"Bearer {orjson.loads(answer)['access_token']}"}

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        body = b"" if document is None else orjson.dumps(document)
        status, answer = self.server.ask(method, f"{path}?api-version=2025-02-15", body, self._bearer)
        return status, orjson.loads(answer) if answer else None


@pytest.fixture(scope="module")
def tenant(strict: Server, key: tuple[str, str]) -> Iterator[Tenant]:
    tenant = Tenant(strict, key)
    for path in (TOPIC, f"{GRID}/namespaces/shop"):
        assert tenant.ask("PUT", path, {"location": "local"})[0] == 201
    assert tenant.ask("PUT", f"{GRID}/namespaces/shop/topics/orders", {})[0] == 201
    yield tenant
    assert tenant.ask("DELETE", GROUP)[0] == 200


def strangers(path: str, base_url: str) -> list[tuple[str, dict[str, str]]]:
    """Requests of somebody without a key of that place: methods and headers."""
    headers: list[dict[str, str]] = [
        {},
        {"aeg-sas-key": OTHER_KEY},
        {"aeg-sas-token": signed(f"{base_url}{path}", OTHER_KEY)},
        {"authorization": "Bearer x.y.z"},
        {"authorization": f"SharedAccessKey {OTHER_KEY}"},
    ]
    return [(method, each) for method in ("POST", "OPTIONS", "GET") for each in headers]


def signed(resource: str, key: str, hours: int = 1) -> str:
    end = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours)).isoformat()
    text = f"r={quote(resource, safe='')}&e={quote(end, safe='')}"
    mac = hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)
    return f"{text}&s={quote(base64.b64encode(mac).decode(), safe='')}"


# ---- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("standing", "absent"),
    [
        (f"{DATA}/orders/api/events", f"{DATA}/absent/api/events"),
        (f"{DATA}/orders/api/events", f"{DATA}/domains/absent/api/events"),
        (f"{DATA}/shop/topics/orders:publish", f"{DATA}/absent/topics/orders:publish"),
        (f"{DATA}/shop/topics/orders:publish", f"{DATA}/shop/topics/absent:publish"),
    ],
)
def test_a_stranger_cannot_tell_which_names_are_taken(tenant: Tenant, standing: str, absent: str) -> None:
    url = tenant.server.url
    for (method, headers), (_, others) in zip(strangers(standing, url), strangers(absent, url), strict=True):
        found = tenant.server.ask(method, standing, b"[]", headers)[0]
        missing = tenant.server.ask(method, absent, b"[]", others)[0]
        assert found == missing, (method, headers)
        assert found in (401, 405), (method, headers)


def test_a_stranger_cannot_tell_names_by_hosts(tenant: Tenant) -> None:
    told = set()
    for label in ("orders", "absent"):
        for headers in ({}, {"aeg-sas-key": OTHER_KEY}):
            host = {"host": f"{label}.local-1.eventgrid.azure.net"}
            told.add(tenant.server.ask("POST", "/api/events", b"[]", {**host, **headers})[0])
    for label in ("shop", "absent"):
        for headers in ({}, {"aeg-sas-key": OTHER_KEY}):
            host = {"host": f"{label}.local-1.eventgrid.azure.net"}
            told.add(tenant.server.ask("POST", "/topics/orders:publish", b"[]", {**host, **headers})[0])
    assert told == {401}


@pytest.mark.parametrize(
    ("resource", "events", "scheme"),
    [
        ("topics/prices", "/api/events", "aeg-sas-key"),
        ("namespaces/prices", "/topics/orders:publish", "authorization"),
    ],
)
def test_a_name_that_stands_takes_no_host_from_its_owner(
    strict: Server, key: tuple[str, str], other_key: tuple[str, str], resource: str, events: str, scheme: str
) -> None:
    """A stranger's topic of the same name, in a subscription that is sorted before the owner's."""
    headers = {"host": "prices.local-1.eventgrid.azure.net", "content-type": "application/json"}
    if scheme == "authorization":
        headers["content-type"] = "application/cloudevents-batch+json"

    def group(tenant_key: tuple[str, str], subscription: str) -> tuple[Tenant, str]:
        tenant, path = Tenant(strict, tenant_key), f"/subscriptions/{subscription}/resourceGroups/hosts"
        at = f"{path}/providers/Microsoft.EventGrid/{resource}"
        assert tenant.ask("PUT", at, {"location": "local"})[0] == 201
        if resource.startswith("namespaces"):
            assert tenant.ask("PUT", f"{at}/topics/orders", {})[0] == 201
        own = tenant.ask("POST", f"{at}/listKeys")[1]["key1"]
        headers[scheme] = f"SharedAccessKey {own}" if scheme == "authorization" else own
        return tenant, path

    owner, group_of_owner = group(key, f"ffffffff-ffff-ffff-ffff-{ACCOUNT}")
    of_owner = dict(headers)
    stranger, its_group = group(other_key, f"00000000-0000-0000-0000-{STRANGER}")
    for label in ("prices", "unknown", "prices"):
        host = {"host": f"{label}.local-1.eventgrid.azure.net"}
        status = strict.ask("POST", events, b"[]", {**of_owner, **host})[0]
        assert status == (401 if label == "unknown" else 200)
    assert strict.ask("POST", events, b"[]", headers)[0] == 401
    for tenant, path in ((stranger, its_group), (owner, group_of_owner)):
        assert tenant.ask("DELETE", path)[0] == 200


# ---- signatures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "resource",
    [
        "",
        "/",
        "?",
        "https://",
        "https://elsewhere.example",
        f"https://elsewhere.example{DATA}/orders/api/events",
        "https://absent.local-1.eventgrid.azure.net/api/events",
        f"https://elsewhere.example{TOPIC}",
        f"{DATA}/orders/api/events",
    ],
)
def test_a_signature_for_nothing_or_another_host_opens_nothing(tenant: Tenant, resource: str) -> None:
    own_key = tenant.ask("POST", f"{TOPIC}/listKeys")[1]["key1"]
    path = f"{DATA}/orders/api/events"
    token = {"aeg-sas-token": signed(resource, own_key)}
    assert tenant.server.ask("POST", path, b"[]", token)[0] == 401
    shop_key = tenant.ask("POST", f"{GRID}/namespaces/shop/listKeys")[1]["key1"]
    resource = resource.replace("orders/api/events", "shop/topics/orders").replace(
        "/topics/orders", "/namespaces/shop"
    )
    token = {
        "aeg-sas-token": signed(resource, shop_key),
        "content-type": "application/cloudevents-batch+json",
    }
    assert tenant.server.ask("POST", f"{DATA}/shop/topics/orders:publish", b"[]", token)[0] == 401


@pytest.mark.parametrize("resource", ["{url}{path}", "{url}", TOPIC])
def test_a_signature_for_the_topic_is_accepted(tenant: Tenant, resource: str) -> None:
    own_key = tenant.ask("POST", f"{TOPIC}/listKeys")[1]["key1"]
    path = f"{DATA}/orders/api/events"
    token = signed(resource.format(url=tenant.server.url, path=path), own_key)
    assert tenant.server.ask("POST", path, b"[]", {"aeg-sas-token": token})[0] == 200


# ---- destinations ------------------------------------------------------------------------------------------------


def subscription(url: str) -> Any:
    return {"endpointType": "WebHook", "properties": {"endpointUrl": url}}


@pytest.mark.parametrize("owner", ["222222222222", ACCOUNT])
def test_a_destination_queue_of_another_account_or_missing_is_refused(tenant: Tenant, owner: str) -> None:
    """Also in push mode of a namespace, which once looked at neither."""
    destination = subscription(f"arn:aws:sqs:us-east-1:{owner}:absent")
    push = {"deliveryConfiguration": {"deliveryMode": "Push", "push": {"destination": destination}}}
    of_namespace = f"{GRID}/namespaces/shop/topics/orders/eventSubscriptions/theirs"
    for path, properties in (
        (f"{TOPIC}/eventSubscriptions/theirs", {"destination": destination}),
        (of_namespace, push),
    ):
        status, answer = tenant.ask("PUT", path, {"properties": properties})
        assert (status, "does not exist at this server" in answer["error"]["message"]) == (400, True)
        assert tenant.ask("GET", path)[0] == 404


def test_a_password_in_a_url_is_masked(tenant: Tenant) -> None:
    unreachable = "http://user:s3cret@127.0.0.1:1/hook?code=s3cret"
    path = f"{TOPIC}/eventSubscriptions/guarded"
    _, answer = tenant.ask("PUT", path, {"properties": {"destination": subscription(unreachable)}})
    assert "s3cret" not in orjson.dumps(answer).decode()
    _, answer = tenant.ask("PUT", path, {"properties": {"destination": subscription("ftp://user:s3cret@a")}})
    assert "s3cret" not in orjson.dumps(answer).decode()


# ---- documents ---------------------------------------------------------------------------------------------------


def many(count: int, mark: str = "a") -> Any:
    return {f"{mark}{number}": "" for number in range(count)}


@pytest.mark.parametrize(
    "path", [TOPIC, f"{GRID}/domains/large", f"{GRID}/namespaces/shop", f"{TOPIC}/eventSubscriptions/large"]
)
def test_a_document_longer_than_anybody_could_use_is_refused(tenant: Tenant, path: str) -> None:
    """Fields that no schema knows are kept and remembered: 60 topics took 190 MB, and a list of them a second."""
    document = {"location": "local", "properties": many(50_000)}
    status, answer = tenant.ask("PUT", path, document)
    assert (status, answer["error"]["code"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize("path", [TOPIC, f"{GRID}/namespaces/shop", f"{GRID}/namespaces/shop/topics/orders"])
def test_a_document_does_not_grow_beyond_that_by_changes(tenant: Tenant, path: str) -> None:
    statuses = [
        tenant.ask("PATCH", path, {"properties": many(6_000, f"of-change-{number}-")})[0]
        for number in range(4)
    ]
    assert statuses[-1] == 413
    shown = tenant.ask("GET", path)[1]
    assert len(orjson.dumps(shown)) < 300_000
    assert not any(name.startswith("of-change-3-") for name in shown["properties"])
