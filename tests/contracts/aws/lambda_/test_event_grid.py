"""Event Grid asks a function by its URL, as it asks any webhook."""

import orjson

from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.azure.resources import Resources, Webhook

#: Agrees to be asked, and keeps what it is asked.
_HOOK = """
import json
import os

def handler(event, context):
    (sent,) = json.loads(event["body"])
    if sent["eventType"] == "Microsoft.EventGrid.SubscriptionValidationEvent":
        return {"validationResponse": sent["data"]["validationCode"]}
    with open(os.environ["FILE"], "w") as kept:
        json.dump([event["requestContext"]["http"]["method"], sent], kept)
    return {"statusCode": 204}
"""


def test_a_webhook_is_a_function_s_url(workshop: Workshop) -> None:
    kept = workshop.server.log.parent / f"event-{id(workshop)}"
    name = workshop.function(_HOOK, Environment={"Variables": {"FILE": str(kept)}})
    url_id = workshop.opened(name).partition("://")[2].partition(".")[0]
    hook = Webhook(url=f"{workshop.server.url}/_redrive/function-url/{url_id}/")
    resources = Resources(workshop.server, hook)
    topic = resources.topic()
    resources.subscribe(topic.id)
    for _ in range(1_000):
        if resources.shown(topic.id).provisioning_state == "Succeeded":
            break
    key = resources.client.topics.list_shared_access_keys("rg", "orders").key1
    event = {
        "id": "1",
        "subject": "cars/1",
        "eventType": "Car.Rented",
        "eventTime": "2026-01-01T00:00:00Z",
        "data": {"car": 1},
        "dataVersion": "1",
    }
    path = topic.endpoint.partition("://")[2].partition("/")[2]
    body = orjson.dumps([event])
    headers = {"aeg-sas-key": key, "Content-Type": "application/json"}
    status, answer = workshop.server.ask("POST", f"/{path}?api-version=2018-01-01", body, headers)
    assert status == 200, answer
    workshop.server.advance(0)
    method, sent = orjson.loads(kept.read_bytes())
    assert (method, sent["id"], sent["data"]) == ("POST", "1", {"car": 1})
