"""Event subscriptions of namespaces' topics that are pushed: the handshake, the schedule, and the end."""

import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
from azure.core.exceptions import HttpResponseError
from azure.mgmt.eventgrid import models

from tests.contracts.azure.grid import Subscriber
from tests.contracts.azure.namespaces import ACCOUNT, GROUP, NAME, SUBSCRIPTION, Shop, placed

MINUTE = 60
_numbers = itertools.count(1)


@pytest.fixture
def hook() -> Iterator[Subscriber]:
    with Subscriber().serving() as hook:
        yield hook


def push(shop: Shop, url: str, *, letters: bool = False, **given: Any) -> Any:
    """Make an event subscription in push mode, of another name each time: a name's endpoint may be resting."""
    destination = models.WebHookEventSubscriptionDestination(endpoint_url=url, **given.pop("destination", {}))
    if letters:
        given["dead_letter_destination_with_resource_identity"] = models.DeadLetterWithResourceIdentity(
            dead_letter_destination=models.StorageBlobDeadLetterDestination(
                resource_id=ACCOUNT, blob_container_name="dead"
            )
        )
    configuration = models.DeliveryConfiguration(
        delivery_mode="Push", push=models.PushInfo(destination=destination, **given)
    )
    return shop.management.namespace_topic_event_subscriptions.begin_create_or_update(
        GROUP,
        NAME,
        "orders",
        f"push-{next(_numbers)}",
        models.Subscription(delivery_configuration=configuration),
    ).result()


def waits_until_given_up(shop: Shop, hook: Subscriber, seconds: int) -> list[int]:
    """The moments of the attempts (seconds since the first), looked for in steps of five."""
    began, moments = shop.server.now(), []
    while shop.server.now() < began + seconds:
        while not hook.is_idle:
            hook.next()
            moments.append(round(shop.server.now() - began))
        shop.server.advance(5)
    return moments


def test_events_are_pushed_as_cloud_events(shop: Shop, hook: Subscriber) -> None:
    made = push(shop, hook.url)
    assert made.provisioning_state == "Succeeded"
    sent = placed(1, subject="orders/1")
    shop.publisher().send(sent)
    hit = hook.next()
    assert hit.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert (hit.document["id"], hit.document["data"]) == (sent.id, {"order": 1})


def test_secrets_of_a_destination_are_shown_on_explicit_request_alone(shop: Shop, hook: Subscriber) -> None:
    url = f"{hook.url}?code=s3cret"
    made = push(shop, url, destination={"delivery_attribute_mappings": [_secret_header()]})
    shown = made.delivery_configuration.push.destination
    assert (shown.endpoint_url, shown.endpoint_base_url) == (None, hook.url)
    subscriptions = shop.management.namespace_topic_event_subscriptions
    assert subscriptions.get_full_url(GROUP, NAME, "orders", made.name).endpoint_url == url
    (header,) = subscriptions.get_delivery_attributes(GROUP, NAME, "orders", made.name).value
    assert header.value == "hush"
    shop.publish(1)
    assert hook.next().headers["x-token"] == "hush"


def _secret_header() -> Any:
    return models.StaticDeliveryAttributeMapping(name="X-Token", value="hush", is_secret=True)


def test_an_endpoint_that_does_not_agree_gets_nothing(shop: Shop) -> None:
    with pytest.raises(HttpResponseError) as refusal:
        push(shop, "http://127.0.0.1:1/nobody")
    assert refusal.value.status_code == 400


def test_a_push_subscription_refuses_receives(shop: Shop, hook: Subscriber) -> None:
    made = push(shop, hook.url)
    with pytest.raises(HttpResponseError, match="not in queue mode"):
        shop.consumer(made.name).receive()


def test_failures_are_tried_again_at_the_published_moments(shop: Shop, hook: Subscriber) -> None:
    push(shop, hook.url)
    hook.status = 500
    shop.publish(1)
    moments = waits_until_given_up(shop, hook, 40 * MINUTE)
    published = [0, 10, 30, 60, 300, 600, 900, 1200, 1500, 1800]
    assert len(moments) == len(published)
    for moment, at in zip(moments, published, strict=True):
        assert at <= moment <= at * 1.025 + 60  # jitter, and an endpoint that rests after each failure


def test_after_its_deliveries_an_event_is_a_dead_letter(shop: Shop, hook: Subscriber) -> None:
    made = push(shop, hook.url, letters=True, max_delivery_count=3)
    hook.status = 500
    shop.publish(1)
    assert len(waits_until_given_up(shop, hook, 5 * MINUTE)) == 3
    letters = f"dead-letters:namespaces:shop:orders:{made.name}"
    query = urlencode({"subscription": SUBSCRIPTION, "group": GROUP, "queue": letters})
    _, answer = shop.server.ask("GET", f"/_redrive/dead-letters?{query}")
    (letter,) = orjson.loads(answer)["letters"]
    assert (letter["attempts"], letter["from"]["id"]) == (3, made.name)


def test_after_its_time_an_event_is_tried_no_more(shop: Shop, hook: Subscriber) -> None:
    push(shop, hook.url, event_time_to_live="PT2M")
    hook.status = 500
    shop.publish(1)
    assert len(waits_until_given_up(shop, hook, 10 * MINUTE)) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 414])
def test_a_permanent_failure_is_tried_once(shop: Shop, hook: Subscriber, status: int) -> None:
    push(shop, hook.url)
    hook.status = status
    shop.publish(1)
    assert len(waits_until_given_up(shop, hook, 2 * MINUTE)) == 1


def test_the_delivery_mode_cannot_be_changed(shop: Shop, hook: Subscriber) -> None:
    made = push(shop, hook.url)
    with pytest.raises(HttpResponseError, match="deliveryMode"):
        shop.subscribe(made.name)


@pytest.mark.parametrize(
    ("destination", "about"),
    [
        (None, "endpointType"),
        (
            models.StorageQueueEventSubscriptionDestination(resource_id=ACCOUNT, queue_name="q-1"),
            "endpointType",
        ),
    ],
)
def test_a_push_goes_to_webhooks_and_event_hubs(shop: Shop, destination: Any, about: str) -> None:
    configuration = models.DeliveryConfiguration(
        delivery_mode="Push",
        push=models.PushInfo(destination=destination, event_time_to_live="PT1H"),
    )
    with pytest.raises(HttpResponseError, match=about):
        shop.management.namespace_topic_event_subscriptions.begin_create_or_update(
            GROUP, NAME, "orders", "billing", models.Subscription(delivery_configuration=configuration)
        )
