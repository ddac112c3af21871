"""Stories 2 to 6 without a mouse: each with the keys that stand on the page, and with the tabulator."""

from typing import Final

import orjson
from selenium.webdriver.common.keys import Keys

from tests.browser.dying import BAD, GOOD, came, dead_orders, good_orders, order, rest_when_failing
from tests.browser.screen import Screen
from tests.cli.telling import POLICY, confirmed, fail
from tests.contracts.aws.sns.client import Sns, Webhook
from tests.contracts.aws.sqs.client import ACCOUNT, REGION
from tests.services.server import Server

ROOM: Final = f"/_redrive/console/{ACCOUNT}/{REGION}"


def test_a_redrive_to_a_broken_endpoint_is_begun_and_resumed_by_keys(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead_orders(sns, server, webhook)
    fail(server, webhook.url, 503)
    screen.open(f"{server.url}/")
    screen.find("[data-key=r]")
    screen.leaving(lambda: screen.keys("r"))
    assert (
        screen.run("return document.activeElement.textContent") == "Rehearse with copies"
    )  # the safe choice
    screen.leaving(lambda: screen.tab_to("Start anyway", Keys.ENTER))
    server.advance(15)
    screen.wait_for("It stopped itself: 10 of 10 failed their first attempt: Server error 503")
    fail(server, webhook.url, None)
    screen.leaving(lambda: screen.tab_to("Resume", Keys.ENTER))
    server.advance(60)
    screen.wait_for("Completed", "#state")
    assert came(webhook, GOOD) == good_orders()


def test_an_order_is_found_mended_and_traced_by_keys(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(f"{server.url}{ROOM}/dead-letters/{dead.name}")
    screen.keys("/")
    screen.keys("body.order:400001")
    screen.leaving(lambda: screen.keys(Keys.ENTER))
    screen.wait_for("1 found")
    screen.run("document.activeElement.blur()")
    causes = len(screen.all(".causes [data-row]"))
    screen.leaving(lambda: screen.keys("j" * (causes + 1), Keys.ENTER))
    address = screen.url
    published = screen.find("dl.facts a[href*='/messages/']").text
    screen.leaving(lambda: screen.tab_to(published, Keys.ENTER))
    assert "dead letter" in screen.text()
    screen.open(address)
    screen.leaving(lambda: screen.keys("e"))
    while screen.run("return document.activeElement.id") != "text":
        screen.keys(Keys.TAB)
    screen.fill("#text", order(400, 1).replace("EURO", "EUR"))
    screen.leaving(lambda: screen.tab_to("Check", Keys.ENTER))
    screen.leaving(lambda: screen.tab_to("Replace and redrive", Keys.ENTER))
    screen.wait_for("was sent with its new body")
    server.advance(1)
    (mended,) = came(webhook, 1)
    assert '"currency": "EUR"' in mended
    assert screen.text("#picked") == f"{GOOD + BAD - 1} messages"


def test_a_message_is_seen_and_a_receiver_resumed_by_keys(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    queue, topic = sns.sqs.queue(), sns.topic()
    subscription = confirmed(topic, webhook, DeliveryPolicy=orjson.dumps(POLICY).decode())
    rest_when_failing(server, topic, subscription)
    fail(server, webhook.url, 404)
    topic.publish("refused")
    server.advance(1)
    fail(server, webhook.url, None)
    topic.publish("held")
    queue.send("did it come?")
    screen.open(f"{server.url}{ROOM}/alarms")
    screen.find("nav a[data-go=q]")
    screen.leaving(lambda: screen.keys("g", "q"))
    screen.leaving(lambda: screen.tab_to(queue.name, Keys.ENTER))
    screen.leaving(lambda: screen.tab_to("Messages", Keys.ENTER))
    assert "did it come?" in screen.text()
    screen.leaving(lambda: screen.keys("j", Keys.ENTER))
    assert "did it come?" in screen.text()
    screen.leaving(lambda: screen.keys("g", "o"))
    assert "On hold" in screen.text(".needs")
    assert screen.axe() == []
    screen.leaving(lambda: screen.tab_to("Resume now", Keys.ENTER))
    screen.wait_for("is resumed: waiting deliveries are tried now")
    assert webhook.next().document["Message"] == "held"
