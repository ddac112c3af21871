"""Stories of dead orders: why they died, and the careful way back."""

import re
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.dying import BAD, GOOD, came, dead_orders, good_orders, waiting
from tests.browser.screen import Screen
from tests.cli.telling import fail
from tests.contracts.aws.sns.client import Sns, Webhook
from tests.services.server import Server, serving

CAREFUL_FIRST = 10


@pytest.mark.parametrize("with_scripts", [True, False])
def test_the_good_orders_go_back_in_four_clicks(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook, with_scripts: bool
) -> None:
    dead_orders(sns, server, webhook)
    screen.scripts(on=with_scripts)
    screen.open(f"{server.url}/")
    screen.press(f"Redrive {GOOD}")
    assert "Server error 503" in screen.text()
    screen.click("input[value=fast]")
    screen.press("Start anyway")
    screen.wait_for("until then Stop cancels it", reload=not with_scripts)
    server.advance(10)
    screen.wait_for("Completed", "#state", reload=not with_scripts)
    assert came(webhook, GOOD) == good_orders()
    assert re.search(
        rf"audit\.did \S+ \S+ by=anybody what='Redrive \S+ of {GOOD} messages \(Server error 503\), as fast as possible'",
        server.log.read_text(),
    )
    screen.press("Back to the dead letters")
    screen.wait_for(f"{BAD} waiting", reload=not with_scripts)
    assert "Client error 400" in screen.text(".causes")


def test_the_same_by_keys_alone(screen: Screen, sns: Sns, server: Server, webhook: Webhook) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(f"{server.url}/")
    screen.find("nav a[data-go=d]")
    screen.leaving(lambda: screen.keys("g", "d"))
    screen.leaving(lambda: screen.tab_to(dead.name, Keys.ENTER))
    screen.leaving(lambda: screen.keys("j", Keys.ENTER))
    screen.leaving(lambda: screen.keys("r"))
    screen.tab_to("Careful", Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert screen.run("return document.querySelector('input[value=fast]').checked")
    screen.leaving(lambda: screen.tab_to("Start anyway", Keys.ENTER))
    server.advance(10)
    screen.wait_for("Completed", "#state")
    assert came(webhook, GOOD) == good_orders()


def test_an_endpoint_that_is_still_broken_gets_ten_and_no_more(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    before = waiting(server, dead)
    fail(server, webhook.url, 503)
    screen.open(f"{server.url}/")
    screen.press(f"Redrive {GOOD}")
    assert screen.find("input[value=careful]").is_selected()
    screen.press("Start anyway")
    server.advance(15)
    screen.wait_for("It stopped itself: 10 of 10 failed their first attempt: Server error 503")
    left = GOOD - CAREFUL_FIRST
    assert f"{left} stay where they are, in order" in screen.text()
    assert waiting(server, dead) == before[:BAD] + before[BAD + CAREFUL_FIRST :]
    fail(server, webhook.url, None)
    screen.press("Resume")
    server.advance(60)
    screen.wait_for("Completed", "#state")
    assert came(webhook, GOOD) == good_orders()


def test_a_cancelled_redrive_leaves_the_rest_in_order(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    before = waiting(server, dead)
    start_steadily(screen, server)
    server.advance(8)
    screen.press("Stop:")
    server.advance(1)
    screen.wait_for("Stopped", "#state")
    moved = int(screen.text("#moved"))
    assert 0 < moved < GOOD
    left = waiting(server, dead)
    assert left == before[:BAD] + before[BAD + moved :]
    assert sorted(came(webhook, moved) + left[BAD:]) == good_orders()


def test_a_redrive_goes_on_after_the_tab_is_closed_and_the_server_killed(
    screen: Screen, webhook: Webhook, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'redrive.db'}"
    with serving(store, "--clock", "simulated", "--allow-reset", directory=tmp_path) as server:
        dead_orders(Sns(server), server, webhook)
        start_steadily(screen, server)
        screen.open("about:blank")
        server.advance(8)
        server.kill()
        server.start()
        screen.open(f"{server.url}/")
        screen.press("Redrive of")
        moved = int(screen.text("#moved"))
        assert 0 < moved < GOOD
        for _ in range(8):
            server.advance(30)  # past the lease of the node that is gone, and then as long as the rest takes
        screen.wait_for("Completed", "#state")
        assert screen.text("#moved") == str(GOOD)
        assert came(webhook, GOOD) == good_orders()
        screen.open("about:blank")


def start_steadily(screen: Screen, server: Server) -> None:
    """Start a redrive of all good orders, two a second."""
    screen.open(f"{server.url}/")
    screen.press(f"Redrive {GOOD}")
    screen.click("input[value=steady]")
    screen.fill("input[name=rate]", "2")
    screen.press("Start anyway")
