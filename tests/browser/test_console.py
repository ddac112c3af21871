"""The console as people use it: why orders are dead and the way back, with and without JavaScript, on any screen."""

from typing import Any

import orjson
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.cli.telling import POLICY, confirmed, fail
from tests.contracts.protocols.sns import Sns, Webhook
from tests.services.server import Server

GOOD, BAD = 14, 2


def press(browser: Chrome, text: str) -> None:
    """Follow the link or press the button that says this."""
    path = f"//main//*[self::a or self::button][starts-with(normalize-space(.), '{text}')]"
    browser.find_element(By.XPATH, path).click()


def wait_for(browser: Chrome, text: str, *, reload: bool = False) -> None:
    """Return when the page says this, loaded anew each time where it cannot ask again by itself."""
    path = f"//main//*[contains(normalize-space(.), '{text}')]"

    def says(chrome: Chrome) -> bool:
        if reload:
            chrome.refresh()
        return bool(chrome.find_elements(By.XPATH, path))

    WebDriverWait(browser, 20).until(says)


def dead_orders(sns: Sns, server: Server, webhook: Webhook) -> str:
    """Let orders die of two causes; the name of their dead-letter queue."""
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    confirmed(topic, webhook, RedrivePolicy=policy, DeliveryPolicy=orjson.dumps(POLICY).decode())
    for status, number in ((400, BAD), (503, GOOD)):
        fail(server, webhook.url, status)
        for each in range(number):
            topic.publish(f"order {status} {each}")
        server.advance(60)
    fail(server, webhook.url, None)
    return dead.arn.rpartition(":")[2]


@pytest.mark.parametrize("with_scripts", [True, False])
def test_the_good_orders_go_back_in_five_clicks(
    browser: Chrome, sns: Sns, server: Server, webhook: Webhook, with_scripts: bool
) -> None:
    dead_orders(sns, server, webhook)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not with_scripts})
    browser.get(f"{server.url}/")
    press(browser, "Look")
    assert "server_error 503" in browser.find_element(By.CSS_SELECTOR, "tr.chosen").text
    press(browser, f"Redrive all {GOOD}")
    browser.find_element(By.CSS_SELECTOR, "input[value=fast]").click()
    press(browser, "Start in 5 seconds")
    wait_for(browser, "Until then Cancel undoes all")
    server.advance(10)
    wait_for(browser, "completed", reload=not with_scripts)
    came = sorted(webhook.next().document["Message"] for _ in range(GOOD))
    assert came == sorted(f"order 503 {each}" for each in range(GOOD))
    press(browser, "Back to the dead letters")
    wait_for(browser, f"{BAD} waiting", reload=not with_scripts)


def test_every_page_suits_everybody_in_both_themes_and_on_a_telephone(
    browser: Chrome, sns: Sns, server: Server, webhook: Webhook, axe: str
) -> None:
    name = dead_orders(sns, server, webhook)
    browser.get(f"{server.url}/")
    press(browser, "Look")
    room = browser.current_url.partition("/dead-letters")[0]
    letter = browser.find_element(By.CSS_SELECTOR, "tr[data-row] td a").get_attribute("href") or ""
    paths = [
        *(f"{server.url}/_redrive/console/{path}" for path in ("", "keys", "login")),
        *(
            f"{room}/{path}"
            for path in ("dead-letters", "queues", "topics", "endpoints?state=all", "messages")
        ),
        *(f"{room}/dead-letters/{name}{path}" for path in ("", "?cause=all", "/plan?what=all&cause=all")),
        *(f"{room}/queues/{name}{path}" for path in ("", "/messages", "/send")),
        letter,
        f"{letter.partition('?')[0]}/edit",
    ]
    for width, theme in ((1280, "light"), (320, "dark"), (320, "light"), (1280, "dark")):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
        for path in paths:
            browser.get(path)
            browser.execute_script(axe)  # type: ignore[no-untyped-call]  # Selenium has no types here
            found: Any = browser.execute_async_script(  # type: ignore[no-untyped-call]  # the same
                "const done = arguments[0]; axe.run().then(found => done(found.violations))"
            )
            told = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
            assert not told, (path, width, theme)
            across = browser.execute_script("return document.documentElement.scrollWidth")  # type: ignore[no-untyped-call]  # the same
            assert across <= width, (path, width)
