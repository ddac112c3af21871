"""Events received under locks, and what becomes of them."""

import datetime as dt
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.eventgrid import models

from tests.contracts.azure.namespaces import GROUP, NAME, Shop, counts, failed, orders, placed, tokens

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


# ---- receive -----------------------------------------------------------------------------------------------------


def test_each_subscription_has_a_copy_of_its_own(shop: Shop) -> None:
    shop.subscribe("billing")
    shop.subscribe("shipping")
    shop.publish(1, 2)
    assert orders(shop.receive("billing")) == [1, 2]
    assert orders(shop.receive("shipping")) == [1, 2]


def test_one_event_is_received_unless_more_are_asked_for(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(*range(5))
    consumer = shop.consumer()
    assert orders(consumer.receive()) == [0]
    assert orders(consumer.receive(max_events=3)) == [1, 2, 3]
    assert orders(consumer.receive(max_events=100)) == [4]


def test_an_event_comes_as_it_was_published(shop: Shop) -> None:
    shop.subscribe()
    sent = placed(7, subject="orders/7", dataschema="https://shop.example/order", extensions={"tenant": "a"})
    shop.publisher().send(sent)
    (received,) = shop.receive()
    event = received.event
    assert (event.id, event.source, event.type, event.subject) == (
        sent.id,
        "/shop",
        "Order.Placed",
        "orders/7",
    )
    assert (event.time, event.dataschema, event.extensions) == (sent.time, sent.dataschema, {"tenant": "a"})
    assert event.data == {"order": 7}


def test_a_receiver_waits_for_an_event(shop: Shop) -> None:
    shop.subscribe()
    consumer = shop.consumer()

    def receive_while_published() -> Any:
        return consumer.receive(max_events=10, max_wait_time=120)

    shop.publish(1)
    assert orders(shop.waiting(receive_while_published)) == [1]


def test_an_empty_wait_ends_in_time(shop: Shop) -> None:
    shop.subscribe()
    before = shop.server.now()
    shop.receive_nothing()
    assert shop.server.now() - before >= 10


def test_events_published_before_the_subscription_are_not_received(shop: Shop) -> None:
    shop.publish(1)
    shop.subscribe()
    shop.publish(2)
    assert orders(shop.receive()) == [2]


@pytest.mark.parametrize("wanted", [{"max_events": 0}, {"max_events": 101}])
def test_max_events_outside_its_bounds_is_refused(shop: Shop, wanted: dict[str, int]) -> None:
    shop.subscribe()
    with pytest.raises(HttpResponseError, match="maxEvents") as refusal:
        shop.consumer().receive(**wanted)
    assert (refusal.value.status_code, refusal.value.error.code) == (400, "BadRequest")


@pytest.mark.parametrize("seconds", [9, 121])
def test_max_wait_time_outside_its_bounds_is_refused(shop: Shop, seconds: int) -> None:
    shop.subscribe()
    with pytest.raises(HttpResponseError, match="maxWaitTime"):
        shop.consumer().receive(max_wait_time=seconds)


def test_missing_topics_and_event_subscriptions_are_not_found(shop: Shop) -> None:
    with pytest.raises(ResourceNotFoundError):
        shop.consumer("nobody").receive()
    with pytest.raises(ResourceNotFoundError):
        shop.publisher(topic="nothing").send(placed(1))


# ---- filters -----------------------------------------------------------------------------------------------------


def test_a_subscription_gets_the_types_it_asks_for(shop: Shop) -> None:
    shop.subscribe(types=["Order.Paid"])
    shop.publisher().send([placed(1), placed(2, "Order.Paid")])
    assert orders(shop.receive()) == [2]


def test_a_subscription_gets_what_passes_its_filters(shop: Shop) -> None:
    shop.subscribe(
        filters=[
            models.NumberGreaterThanFilter(key="data.order", value=10),
            models.StringBeginsWithFilter(key="subject", values=["eu/", "us/"]),
        ]
    )
    shop.publisher().send(
        [placed(11, subject="eu/1"), placed(9, subject="eu/2"), placed(12, subject="jp/3"), placed(13)]
    )
    assert orders(shop.receive()) == [11]


# ---- acknowledge -------------------------------------------------------------------------------------------------


def test_acknowledged_events_do_not_come_again(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1, 2)
    received = shop.receive()
    answer = shop.consumer().acknowledge(lock_tokens=tokens(received))
    assert answer.succeeded_lock_tokens == tokens(received)
    assert answer.failed_lock_tokens == []
    shop.server.advance(10 * MINUTE)
    shop.receive_nothing()


def test_some_tokens_may_fail_and_others_not(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    (good,) = tokens(shop.receive())
    answer = shop.consumer().acknowledge(lock_tokens=["nonsense", good, good])
    assert answer.succeeded_lock_tokens == [good]
    assert [one.lock_token for one in answer.failed_lock_tokens] == ["nonsense", good]
    assert failed(answer) == ["BadToken", "TokenLost"]


def test_a_token_is_of_its_own_subscription(shop: Shop) -> None:
    shop.subscribe("billing")
    shop.subscribe("shipping")
    shop.publish(1)
    answer = shop.consumer("shipping").acknowledge(lock_tokens=tokens(shop.receive("billing")))
    assert failed(answer) == ["BadToken"]


@pytest.mark.parametrize("verb", ["acknowledge", "release", "reject", "renew_locks"])
def test_a_lock_that_ran_out_is_lost(shop: Shop, verb: str) -> None:
    shop.subscribe(receive_lock_duration_in_seconds=60)
    shop.publish(1)
    held = tokens(shop.receive())
    shop.server.advance(61)
    answer = getattr(shop.consumer(), verb)(lock_tokens=held)
    assert (answer.succeeded_lock_tokens, failed(answer)) == ([], ["TokenLost"])
    assert counts(shop.receive()) == [2]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"lockTokens": []}', b'{"lockTokens": [1]}'])
def test_a_call_without_tokens_is_refused(shop: Shop, body: bytes) -> None:
    shop.subscribe()
    path = (
        f"{shop.endpoint.removeprefix(shop.server.url)}/topics/orders/eventsubscriptions/billing:acknowledge"
    )
    status, answer = shop.server.ask("POST", path, body)
    assert (status, b'"code":"BadRequest"' in answer) == (400, True)


# ---- locks -------------------------------------------------------------------------------------------------------


def test_a_lock_holds_its_time_and_then_the_event_comes_again(shop: Shop) -> None:
    shop.subscribe(receive_lock_duration_in_seconds=90)
    shop.publish(1)
    assert counts(shop.receive()) == [1]
    shop.server.advance(75)
    shop.receive_nothing()
    shop.server.advance(10)
    assert counts(shop.receive()) == [2]


def test_a_renewed_lock_holds_its_whole_time_again(shop: Shop) -> None:
    shop.subscribe(receive_lock_duration_in_seconds=60)
    shop.publish(1)
    held = tokens(shop.receive())
    for _ in range(5):
        shop.server.advance(50)
        assert shop.consumer().renew_locks(lock_tokens=held).succeeded_lock_tokens == held
    shop.server.advance(50)
    assert shop.consumer().acknowledge(lock_tokens=held).succeeded_lock_tokens == held


def test_a_lock_is_renewed_for_an_hour_after_the_first_receipt(shop: Shop) -> None:
    shop.subscribe(receive_lock_duration_in_seconds=300)
    shop.publish(1)
    held = tokens(shop.receive())
    for _ in range(14):
        shop.server.advance(256)
        assert shop.consumer().renew_locks(lock_tokens=held).failed_lock_tokens == []
    shop.server.advance(17)  # an hour and a second
    assert failed(shop.consumer().renew_locks(lock_tokens=held)) == ["BadToken"]
    assert shop.consumer().acknowledge(lock_tokens=held).succeeded_lock_tokens == held


# ---- release -----------------------------------------------------------------------------------------------------


def test_a_released_event_comes_again_at_once(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    held = tokens(shop.receive())
    assert shop.consumer().release(lock_tokens=held).succeeded_lock_tokens == held
    assert counts(shop.receive()) == [2]
    assert failed(shop.consumer().acknowledge(lock_tokens=held)) == ["TokenLost"]


@pytest.mark.parametrize("delay", ["10", "60", "600", "3600"])
def test_an_event_released_with_a_delay_comes_after_it(shop: Shop, delay: str) -> None:
    shop.subscribe()
    shop.publish(1)
    shop.consumer().release(lock_tokens=tokens(shop.receive()), release_delay=delay)
    before = shop.server.now()
    consumer = shop.consumer()
    shop.server.advance(int(delay) - 5)
    again = shop.waiting(lambda: consumer.receive(max_wait_time=10))
    assert counts(again) == [2]
    assert shop.server.now() - before >= int(delay)
    consumer.release(lock_tokens=tokens(again), release_delay=delay)
    shop.server.advance(int(delay))
    assert counts(shop.receive()) == [3]  # at once: the clock stands


def test_a_delay_is_one_of_five(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    with pytest.raises(HttpResponseError, match="releaseDelayInSeconds"):
        shop.consumer().release(lock_tokens=tokens(shop.receive()), release_delay=11)


# ---- what nobody can process ---------------------------------------------------------------------------------------


def test_rejected_events_do_not_come_again(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    held = tokens(shop.receive())
    assert shop.consumer().reject(lock_tokens=held).succeeded_lock_tokens == held
    shop.server.advance(5 * MINUTE)
    shop.receive_nothing()


def test_after_its_deliveries_an_event_is_dropped(shop: Shop) -> None:
    shop.subscribe(max_delivery_count=3)
    shop.publish(1)
    for number in (1, 2, 3):
        assert counts(shop.receive()) == [number]
        shop.server.advance(61)
    shop.receive_nothing()


def test_after_its_time_an_event_is_dropped(shop: Shop) -> None:
    shop.subscribe(event_time_to_live=dt.timedelta(minutes=5))
    shop.publish(1)
    shop.server.advance(5 * MINUTE - 2)
    shop.publish(2)
    shop.server.advance(2)
    assert orders(shop.receive()) == [2]


def test_a_topic_keeps_events_for_its_days(shop: Shop) -> None:
    shop.management.namespace_topics.begin_create_or_update(
        GROUP, NAME, "orders", models.NamespaceTopic(event_retention_in_days=2)
    ).result()
    shop.subscribe()
    shop.publish(1)
    shop.server.advance(DAY)
    shop.publish(2)
    shop.server.advance(DAY)
    assert orders(shop.receive()) == [2]


def test_another_retention_holds_for_what_is_there(shop: Shop) -> None:
    shop.subscribe()
    shop.publish(1)
    shop.server.advance(DAY + 1)
    shop.management.namespace_topics.begin_update(
        GROUP, NAME, "orders", models.NamespaceTopicUpdateParameters(event_retention_in_days=1)
    ).result()
    shop.receive_nothing()


def test_an_expired_subscription_is_not_found(shop: Shop) -> None:
    ends = dt.datetime.fromtimestamp(shop.server.now() + HOUR, dt.UTC)
    shop.subscribe(expires_at=ends)
    shop.publish(1)
    shop.server.advance(HOUR)
    with pytest.raises(ResourceNotFoundError):
        shop.consumer().receive()


def test_an_expired_subscription_takes_its_events_along(shop: Shop) -> None:
    ends = dt.datetime.fromtimestamp(shop.server.now() + HOUR, dt.UTC)
    shop.subscribe(expires_at=ends)
    shop.publish(1)
    shop.server.advance(HOUR)
    shop.server.advance(1)
    found = shop.management.namespace_topic_event_subscriptions.list_by_namespace_topic(GROUP, NAME, "orders")
    assert list(found) == []
    shop.subscribe()
    shop.publish(2)
    assert orders(shop.receive()) == [2]
