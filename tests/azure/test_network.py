"""Network rules of topics: addresses, masks, and the private side."""

from typing import Any

import pytest

from redrive.azure.arm.schema import NETWORK, DocumentSchema
from redrive.azure.eventgrid.settings import Network
from redrive.azure.wire.answers import AzureError
from tests.azure.stage import EVENT, TOPIC, Stage
from tests.azure.test_event_publishing import Publishers, publishers, refusal, request

__all__ = ["publishers"]


def rules(*masks: str, **others: Any) -> dict[str, Any]:
    return {"inboundIpRules": [{"ipMask": mask, "action": "Allow"} for mask in masks], **others}


NETWORK_SCHEMA = DocumentSchema(NETWORK)
CLOSED = {"publicNetworkAccess": "Disabled"}
OPEN = {"publicNetworkAccess": "Enabled"}


@pytest.mark.parametrize(
    ("properties", "client_host", "admitted"),
    [
        ({}, "203.0.113.9", True),
        (OPEN, "203.0.113.9", True),
        (OPEN, "", True),
        (rules(), "203.0.113.9", True),
        (rules("203.0.113.0/24"), "203.0.113.9", True),
        (rules("203.0.113.0/24"), "203.0.114.9", False),
        (rules("203.0.113.0/24"), "127.0.0.1", False),
        (rules("203.0.113.0/24"), "", False),
        (rules("203.0.113.0/24"), "::ffff:203.0.113.9", True),
        (rules("203.0.113.0/24"), "2001:db8::1", False),
        (rules("203.0.113.9"), "203.0.113.9", True),
        (rules("203.0.113.9"), "203.0.113.8", False),
        (rules("203.0.113.77/24"), "203.0.113.9", True),
        (rules("10.0.0.0/8", "2001:db8::/32"), "2001:db8::1", True),
        (rules("10.0.0.0/8", "2001:db8::/32"), "10.255.0.1", True),
        (rules("0.0.0.0/0"), "203.0.113.9", True),
        (CLOSED, "127.0.0.1", True),
        (CLOSED, "::1", True),
        (CLOSED, "::ffff:127.0.0.1", True),
        (CLOSED, "10.1.2.3", True),
        (CLOSED, "172.31.255.255", True),
        (CLOSED, "172.32.0.0", False),
        (CLOSED, "192.168.0.1", True),
        (CLOSED, "169.254.1.1", True),
        (CLOSED, "fe80::1%eth0", True),
        (CLOSED, "fd00::1", True),
        (CLOSED, "203.0.113.9", False),
        (CLOSED, "2001:db8::1", False),
        (CLOSED, "100.64.0.1", False),
        (rules("203.0.113.0/24", **CLOSED), "203.0.113.9", False),
        (rules("203.0.113.0/24", **CLOSED), "10.1.2.3", True),
    ],
)
def test_a_network_admits_addresses(properties: dict[str, Any], client_host: str, admitted: bool) -> None:
    assert Network.of(properties).admits(client_host) is admitted


@pytest.mark.parametrize(
    "properties",
    [
        rules("203.0.113.0/33"),
        rules("example.org"),
        rules(""),
        {"inboundIpRules": [{"ipMask": 5}]},
        {"inboundIpRules": ["10.0.0.0/8"]},
        {"inboundIpRules": [{"ipMask": "10.0.0.0/8", "action": "Deny"}]},
        {"inboundIpRules": {"ipMask": "10.0.0.0/8"}},
        rules(*["10.0.0.0/8"] * 129),
        {"publicNetworkAccess": "SecuredByPerimeter"},
        {"minimumTlsVersionAllowed": "1.3"},
    ],
)
def test_network_rules_that_cannot_be_enforced_are_refused(properties: dict[str, Any]) -> None:
    with pytest.raises(AzureError) as refusal:
        NETWORK_SCHEMA.accept(properties)
    assert refusal.value.status == 400


def test_network_rules_are_kept_with_public_access_as_the_default() -> None:
    said = rules(*["10.0.0.0/8"] * 128, minimumTlsVersionAllowed="1.2", publicNetworkAccess="disabled")
    assert NETWORK_SCHEMA.accept(said) == {**said, **CLOSED}
    assert NETWORK_SCHEMA.accept({}) == OPEN


@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
async def test_a_publisher_outside_the_masks_is_refused(
    stage: Stage, publishers: Publishers, method: str
) -> None:
    await stage.topic(TOPIC, **rules("10.0.0.0/8"))
    asked = request([EVENT], method=method, host="orders.example")
    assert (asked.client_host, (error := await refusal(publishers, asked)).status) == ("127.0.0.1", 403)
    assert (error.code, error.details[0].code) == ("Forbidden", "Forbidden")
    said = "Publishing to ORDERS.EXAMPLE by client 127.0.0.1 is rejected due to IpAddress filtering rules. "
    assert error.message.startswith(said)
    asked.client_host = "10.0.0.7"
    assert (await publishers.answer(asked)).status == 200
