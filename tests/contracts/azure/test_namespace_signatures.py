"""Shared access signatures open of a namespace what they are for, and until they end; so do keys as topics have them."""

import datetime as dt
from urllib.parse import quote

import orjson
import pytest
from azure.eventgrid import generate_sas

from tests.contracts.azure.namespaces import GROUP, NAME, Shop
from tests.contracts.azure.test_namespace_access import ours, shop, strict

__all__ = ["ours", "shop", "strict"]  # fixtures

IN_AN_HOUR = dt.timedelta(hours=1)
BATCH = {"content-type": "application/cloudevents-batch+json"}
AT_HOST = f"https://{NAME}.local-1.eventgrid.azure.net"


def key_of(shop: Shop, of: str = "namespace", which: str = "key1") -> str:
    manager = shop.management
    keys = (
        manager.namespaces.list_shared_access_keys(GROUP, NAME)
        if of == "namespace"
        else manager.namespace_topics.list_shared_access_keys(GROUP, NAME, of)
    )
    key: str = getattr(keys, which)
    return key


def signed(shop: Shop, resource: str, key: str = "", ends_in: dt.timedelta = IN_AN_HOUR) -> str:
    token: str = generate_sas(resource, key or key_of(shop), dt.datetime.now(dt.UTC) + ends_in)
    return token


def ask(shop: Shop, what: str, headers: dict[str, str], query: str = "") -> int:
    """Return the status with which `orders:publish` or the like is answered."""
    path = f"{shop.endpoint.removeprefix(shop.server.url)}/topics/{what}{query}"
    body = b"[]" if what.endswith("publish") else orjson.dumps({"lockTokens": ["none"]})
    return shop.server.ask("POST", path, body, {**BATCH, **headers})[0]


PUBLISH, SETTLE = "orders:publish", "orders/eventsubscriptions/billing:acknowledge"


@pytest.mark.parametrize(
    ("below", "opened"),
    [
        ("", {PUBLISH, SETTLE}),
        ("/", {PUBLISH, SETTLE}),
        ("/topics/orders", {PUBLISH, SETTLE}),
        ("/topics/ORDERS", {PUBLISH, SETTLE}),
        ("/topics/orders/eventsubscriptions/billing", {SETTLE}),
        ("/topics/orders/eventsubscriptions/other", set()),
        ("/topics/ord", set()),
        ("/topics/bills", set()),
    ],
)
def test_a_signature_opens_what_it_is_for(shop: Shop, below: str, opened: set[str]) -> None:
    for base in (shop.endpoint, AT_HOST):
        token = signed(shop, f"{base}{below}")
        for what in (PUBLISH, SETTLE):
            expected = 200 if what in opened else 401
            assert ask(shop, what, {"aeg-sas-token": token}) == expected
            assert ask(shop, what, {"authorization": f"SharedAccessSignature {token}"}) == expected


@pytest.mark.parametrize("which", ["key1", "key2"])
@pytest.mark.parametrize("of", ["namespace", "orders"])
def test_each_key_signs(shop: Shop, of: str, which: str) -> None:
    token = signed(shop, shop.endpoint, key_of(shop, of, which))
    assert ask(shop, PUBLISH, {"aeg-sas-token": token}) == 200


def test_invalid_shared_access_signatures_are_refused(shop: Shop) -> None:
    good = signed(shop, shop.endpoint)
    over = signed(shop, shop.endpoint, ends_in=-dt.timedelta(seconds=1))
    another = signed(shop, shop.endpoint, "bm90IGEga2V5")
    longer = good.replace("&e=", "&e=9", 1)
    for token in (over, another, longer, "nonsense", "", good[:-8]):
        assert ask(shop, PUBLISH, {"aeg-sas-token": token}) == 401
    assert ask(shop, PUBLISH, {"aeg-sas-token": good}) == 200


def test_keys_in_a_header_and_in_the_url(shop: Shop) -> None:
    key = key_of(shop)
    assert ask(shop, PUBLISH, {"aeg-sas-key": key}) == 200
    assert ask(shop, PUBLISH, {}, f"?aeg-sas-key={quote(key, safe='')}") == 200
    assert ask(shop, PUBLISH, {"aeg-sas-key": "bm90IGEga2V5"}) == 401
    assert ask(shop, PUBLISH, {}, "?aeg-sas-key=bm90IGEga2V5") == 401
    first_decides = {"aeg-sas-key": "bm90IGEga2V5", "authorization": f"SharedAccessKey {key}"}
    assert ask(shop, PUBLISH, first_decides) == 401
