"""Stories of endpoints: rested ones that are back, and those that only may be looked at."""

from datetime import datetime
from typing import Final

import orjson

from tests.browser.dying import rest_when_failing
from tests.browser.screen import Screen
from tests.cli.telling import POLICY, confirmed, fail
from tests.contracts.aws.sns.client import Sns, Topic, Webhook
from tests.services.server import Server

REST_SECONDS: Final = 300  # after a 404
#: The width of a list that stands behind a scroll bar (CSS pixels).
_BEHIND_THE_EDGE: Final = """
const list = document.querySelector("main .table");
return list.scrollWidth - list.clientWidth;
"""


def test_an_endpoint_that_is_back_is_lifted_and_another_tab_sees_it(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    long_name = "OrdersOfAllRentalCarStationsInScandinavia"
    topic = Topic(sns, sns.client.create_topic(Name=long_name)["TopicArn"])
    subscription = confirmed(topic, webhook, DeliveryPolicy=orjson.dumps(POLICY).decode())
    rest_when_failing(server, topic, subscription)
    fail(server, webhook.url, 404)
    topic.publish("refused")
    rested_at = int(server.now())
    server.advance(1)
    fail(server, webhook.url, None)
    topic.publish("held")
    endpoints = f"{server.url}/_redrive/console/{sns.account}/{sns.region}/endpoints"
    screen.open(endpoints)
    assert "1 on hold" in screen.text()
    assert screen.axe() == []
    for width in (1280, 820):
        screen.size(width)
        assert screen.run(_BEHIND_THE_EDGE) <= 0, width
    assert "Client error 404" in screen.text("tr[data-row]")
    until = screen.find("td[data-label='Next attempt'] time").get_attribute("datetime") or ""
    assert int(datetime.fromisoformat(until).timestamp()) == rested_at + REST_SECONDS
    since = screen.find("tr[data-row] time").get_attribute("datetime") or ""
    assert int(datetime.fromisoformat(since).timestamp()) == rested_at
    with screen.other_tab():
        screen.open(endpoints)
        screen.press("Resume now")
        screen.wait_for("is resumed: waiting deliveries are tried now")
        assert webhook.next().document["Message"] == "held"
    screen.wait_for("No subscription fails or is on hold.")


def test_an_endpoint_that_is_served_again_is_not_lifted(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    topic = sns.topic()
    subscription = confirmed(topic, webhook, DeliveryPolicy=orjson.dumps(POLICY).decode())
    rest_when_failing(server, topic, subscription)
    fail(server, webhook.url, 404)
    topic.publish("refused")
    server.advance(1)
    fail(server, webhook.url, None)
    screen.open(f"{server.url}/_redrive/console/{sns.account}/{sns.region}/endpoints")
    screen.click("#live-switch")
    server.advance(3600)  # the rest ends by itself
    topic.publish("served")
    server.advance(1)
    screen.press("Resume now")
    screen.wait_for("was not on hold")
