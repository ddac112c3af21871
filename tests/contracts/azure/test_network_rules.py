"""Topics, domains and namespaces that are open to some addresses alone; the clients of these tests are on 127.0.0.1."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.eventgrid import EventGridEvent
from azure.mgmt.eventgrid import models

from tests.contracts.azure.grid import Grid
from tests.contracts.azure.namespaces import GROUP, NAME, Shop, orders, placed
from tests.contracts.azure.resources import refused

ELSEWHERE = [{"ipMask": "203.0.113.0/24", "action": "Allow"}]
HERE = [*ELSEWHERE, {"ipMask": "127.0.0.1", "action": "Allow"}]
EVENT = EventGridEvent("/orders/1", "Order.Placed", {"order": 1}, "1.0")


@pytest.mark.parametrize("kind", ["topic", "domain"])
def test_publishers_from_some_addresses(grid: Grid, kind: str) -> None:
    make = getattr(grid.resources, kind)
    event = EventGridEvent(
        "/orders/1", "Order.Placed", {}, "1.0", **({"topic": "a"} if kind == "domain" else {})
    )
    closed = make(inbound_ip_rules=ELSEWHERE)
    with pytest.raises(HttpResponseError, match=r"by client 127\.0\.0\.1 is rejected") as refusal:
        grid.publish(closed, [event])
    assert (refusal.value.status_code, refusal.value.error.code) == (403, "Forbidden")
    assert [one.ip_mask for one in make(inbound_ip_rules=HERE).inbound_ip_rules] == [
        "203.0.113.0/24",
        "127.0.0.1",
    ]
    assert grid.publish(closed, [event]) == 200


def test_loopback_is_the_private_side(grid: Grid) -> None:
    topic = grid.topic(public_network_access="Disabled", inbound_ip_rules=ELSEWHERE)
    assert grid.publish(topic, [EVENT]) == 200


def test_malformed_network_rules_are_refused(grid: Grid) -> None:
    for fields in ({"inbound_ip_rules": [{"ipMask": "anywhere"}]}, {"minimum_tls_version_allowed": "1.3"}):
        assert refused(grid.topic, **fields)[0] == 400


def test_a_namespace_for_some_addresses(shop: Shop) -> None:
    shop.subscribe()
    shop.publisher().send(placed(1))
    _change(shop, ELSEWHERE)
    for call in (lambda: shop.publisher().send(placed(2)), shop.consumer().receive):
        with pytest.raises(HttpResponseError, match=r"127\.0\.0\.1 is rejected") as refusal:
            call()
        assert refusal.value.status_code == 403
    _change(shop, HERE)
    assert orders(shop.receive()) == [1]


def _change(shop: Shop, rules: Any) -> None:
    change = models.NamespaceUpdateParameters(inbound_ip_rules=rules)
    shop.management.namespaces.begin_update(GROUP, NAME, change).result()
