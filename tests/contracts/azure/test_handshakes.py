"""Webhooks are asked whether they agree, and what comes of their answers."""

import contextlib
import datetime as dt
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.contracts.azure.resources import Resources, refused

CLOUD_EVENTS = "CloudEventSchemaV1_0"
MINUTE = 60


def follow(url: str, method: str = "GET") -> int:
    """Open a URL as a browser does; the status."""
    parts = urlsplit(url)
    with contextlib.closing(HTTPConnection(parts.netloc, timeout=10)) as connection:
        connection.request(method, f"{parts.path}?{parts.query}")
        return connection.getresponse().status


def silent(_: str) -> tuple[int, Any]:
    return 200, {}


# ---- events with a code ------------------------------------------------------------------------------------------


def test_an_endpoint_that_answers_with_the_code_agrees(resources: Resources) -> None:
    topic = resources.topic()
    resources.subscribe(topic.id, "Billing")
    asked = resources.hook.next()
    assert asked.method == "POST"
    assert asked.headers["aeg-event-type"] == "SubscriptionValidation"
    assert asked.headers["aeg-subscription-name"] == "BILLING"
    (event,) = asked.body
    assert event["data"].keys() == {"validationCode", "validationUrl"}
    assert event["data"]["validationUrl"].startswith(f"{resources.server.url}/eventsubscriptions/")
    assert dt.datetime.fromisoformat(event.pop("eventTime")).timestamp() == pytest.approx(
        resources.server.now()
    )
    assert event.pop("id")
    assert event.pop("data")
    assert event == {
        "topic": topic.id,
        "subject": "",
        "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
        "dataVersion": "2",
        "metadataVersion": "1",
    }
    assert resources.shown(topic.id, "billing").provisioning_state == "Succeeded"


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (202, {"validationResponse": "{code}"}, "response code 202"),
        (404, {}, "response code 404"),
        (500, {}, "response code 500"),
        (200, {"validationResponse": "another"}, "another code"),
    ],
)
def test_an_endpoint_that_does_not_agree(resources: Resources, status: int, body: Any, why: str) -> None:
    topic = resources.topic()
    resources.hook.answers = lambda code: (
        status,
        {name: value.format(code=code) for name, value in body.items()},
    )
    refusal, code, message = refused(resources.subscribe, topic.id)
    assert (refusal, code) == (400, "Url validation")
    assert why in message
    assert "https://aka.ms/esvalidation" in message
    assert "s3cret" not in message
    assert refused(resources.shown, topic.id)[0] == 404


def test_an_unreachable_endpoint_fails_the_validation(resources: Resources) -> None:
    topic = resources.topic()
    nobody = resources.webhook(endpoint_url="http://127.0.0.1:9/hook")
    assert refused(resources.subscribe, topic.id, destination=nobody)[1] == "Url validation"


def test_an_action_by_hand_within_ten_minutes(resources: Resources) -> None:
    topic = resources.topic()
    resources.hook.answers = silent
    assert resources.subscribe(topic.id).provisioning_state == "AwaitingManualAction"
    url = resources.hook.next().body[0]["data"]["validationUrl"]
    resources.server.advance(10 * MINUTE - 1)
    assert resources.shown(topic.id).provisioning_state == "AwaitingManualAction"
    assert follow(url) == 200
    assert resources.shown(topic.id).provisioning_state == "Succeeded"


def test_an_action_by_hand_that_comes_too_late(resources: Resources) -> None:
    topic = resources.topic()
    resources.hook.answers = silent
    resources.subscribe(topic.id)
    url = resources.hook.next().body[0]["data"]["validationUrl"]
    resources.server.advance(10 * MINUTE)
    assert resources.shown(topic.id).provisioning_state == "Failed"
    assert follow(url) == 404
    resources.hook.answers = lambda code: (200, {"validationResponse": code})
    resources.subscribe(topic.id)
    assert resources.shown(topic.id).provisioning_state == "Succeeded"


def test_an_endpoint_that_opens_the_url_before_it_answers(resources: Resources) -> None:
    topic = resources.topic()
    hook = resources.hook

    def opens(code: str) -> tuple[int, Any]:
        url = f"{resources.server.url}/eventsubscriptions/billing/validate?id={code}"
        assert follow(url) == 200
        return 200, {}

    hook.answers = opens
    resources.subscribe(topic.id)
    assert resources.shown(topic.id).provisioning_state == "Succeeded"


def test_a_validated_webhook_is_not_validated_again_when_labels_change(resources: Resources) -> None:
    topic = resources.topic()
    resources.subscribe(topic.id)
    resources.hook.answers = silent
    resources.subscribe(topic.id, labels=["a"])
    shown = resources.shown(topic.id)
    assert (shown.labels, shown.provisioning_state) == (["a"], "Succeeded")
    other = resources.webhook(endpoint_url=f"{resources.hook.url}&other=1")
    resources.subscribe(topic.id, destination=other)
    assert resources.shown(topic.id).provisioning_state == "AwaitingManualAction"


def test_an_unissued_validation_url_is_not_found(resources: Resources) -> None:
    assert follow(f"{resources.server.url}/eventsubscriptions/billing/validate?id=guessed") == 404


# ---- deletion ---------------------------------------------------------------------------------------------------


def test_an_endpoint_is_told_of_the_end(resources: Resources) -> None:
    topic = resources.topic()
    resources.subscribe(topic.id, "Billing")
    resources.hook.next()
    resources.client.event_subscriptions.begin_delete(topic.id, "billing").result()
    told = resources.hook.next()
    assert told.headers["aeg-event-type"] == "SubscriptionDeletion"
    assert told.headers["aeg-subscription-name"] == "BILLING"
    (event,) = told.body
    assert event["eventType"] == "Microsoft.EventGrid.SubscriptionDeletedEvent"
    name = f"{topic.id}/providers/Microsoft.EventGrid/eventSubscriptions/Billing"
    assert event["data"] == {"eventSubscriptionId": name}


def test_a_cloud_events_endpoint_is_told_of_no_deletion(resources: Resources) -> None:
    topic = resources.topic(input_schema=CLOUD_EVENTS)
    resources.subscribe(topic.id)
    resources.hook.next()
    resources.client.event_subscriptions.begin_delete(topic.id, "billing").result()
    resources.subscribe(topic.id, "next")
    assert resources.hook.next().method == "OPTIONS"
    assert resources.hook.asked.empty()


# ---- permission for CloudEvents ------------------------------------------------------------------------------------


def test_a_cloud_events_endpoint_permits_deliveries(resources: Resources) -> None:
    topic = resources.topic(input_schema=CLOUD_EVENTS)
    resources.subscribe(topic.id)
    asked = resources.hook.next()
    assert (asked.method, asked.headers["webhook-request-origin"]) == ("OPTIONS", "eventgrid.azure.net")
    shown = resources.shown(topic.id)
    assert (shown.event_delivery_schema, shown.provisioning_state) == (CLOUD_EVENTS, "Succeeded")


def test_permission_may_be_for_every_origin(resources: Resources) -> None:
    topic = resources.topic()
    resources.hook.headers = {"WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "120"}
    resources.subscribe(topic.id, event_delivery_schema=CLOUD_EVENTS)
    assert resources.shown(topic.id).provisioning_state == "Succeeded"


def test_permission_for_another_origin_is_a_refusal(resources: Resources) -> None:
    topic = resources.topic()
    resources.hook.headers = {"WebHook-Allowed-Origin": "example.com"}
    _, code, message = refused(resources.subscribe, topic.id, event_delivery_schema=CLOUD_EVENTS)
    assert (code, "example.com" in message) == ("Url validation", True)


def test_permission_may_come_by_the_callback(resources: Resources) -> None:
    topic = resources.topic()
    resources.hook.headers = {}
    made = resources.subscribe(topic.id, event_delivery_schema=CLOUD_EVENTS)
    assert made.provisioning_state == "AwaitingManualAction"
    assert follow(resources.hook.next().headers["webhook-request-callback"], "POST") == 200
    assert resources.shown(topic.id).provisioning_state == "Succeeded"
