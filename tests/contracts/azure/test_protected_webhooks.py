"""A webhook that asks for a token of Entra: it checks each request by what the authority publishes."""

from typing import Any, Final
from urllib.request import urlopen

import jwt
import orjson
import pytest
from azure.eventgrid import EventGridEvent

from tests.contracts.azure.grid import Grid
from tests.contracts.azure.namespaces import SUBSCRIPTION
from tests.contracts.azure.resources import Asked, Resources, refused

TENANT: Final = "11111111-1111-1111-1111-111111111111"
APPLICATION: Final = "api://billing"
PROTECTED: Final = {
    "azure_active_directory_tenant_id": TENANT,
    "azure_active_directory_application_id_or_uri": APPLICATION,
}
CLOUD_EVENTS: Final = "CloudEventSchemaV1_0"


def claims(asked: Asked, authority: str) -> dict[str, Any]:
    """Verify a token as a webhook does: it knows the authority's URL and its own id, and no key."""
    with urlopen(f"{authority}/.well-known/openid-configuration") as answer:
        configuration = orjson.loads(answer.read())
    token = asked.headers["authorization"].removeprefix("Bearer ")
    key = jwt.PyJWKClient(configuration["jwks_uri"]).get_signing_key_from_jwt(token)
    algorithms = configuration["id_token_signing_alg_values_supported"]
    said: dict[str, Any] = jwt.decode(
        token, key, algorithms, audience=APPLICATION, issuer=configuration["issuer"]
    )
    return said


@pytest.mark.parametrize(("schema", "question"), [("EventGridSchema", "POST"), (CLOUD_EVENTS, "OPTIONS")])
def test_every_request_has_a_token(grid: Grid, schema: str, question: str) -> None:
    resources = grid.resources
    topic = resources.topic()
    resources.subscribe(topic.id, destination=resources.webhook(**PROTECTED), event_delivery_schema=schema)
    authority = f"{resources.server.url}/{TENANT}/v2.0"
    handshake = resources.hook.next()
    assert handshake.method == question
    assert claims(handshake, authority)["tid"] == TENANT
    if schema == CLOUD_EVENTS:
        return
    grid.publish(topic, [EventGridEvent("/orders/1", "Order.Placed", {"order": 1}, "1.0")])
    delivery = resources.hook.next()
    assert delivery.body[0]["data"] == {"order": 1}
    said = claims(delivery, authority)
    assert (said["azp"], said["sub"]) == ("4962773b-9cdb-44cf-a8bf-237846a00ab7", SUBSCRIPTION)


def test_a_webhook_without_entra_settings_gets_no_token(resources: Resources) -> None:
    topic = resources.topic()
    resources.subscribe(topic.id)
    assert "authorization" not in resources.hook.next().headers
    shown = resources.shown(topic.id).destination
    assert shown.azure_active_directory_tenant_id is None
    resources.subscribe(topic.id, destination=resources.webhook(**PROTECTED))
    assert resources.shown(topic.id).destination.azure_active_directory_tenant_id == TENANT
    assert "authorization" in resources.hook.next().headers


@pytest.mark.parametrize("missing", sorted(PROTECTED))
def test_an_incomplete_audience_is_refused(resources: Resources, missing: str) -> None:
    half = {name: value for name, value in PROTECTED.items() if name != missing}
    topic = resources.topic()
    assert refused(resources.subscribe, topic.id, destination=resources.webhook(**half))[:2] == (
        400,
        "InvalidRequest",
    )
