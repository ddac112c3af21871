"""Stories of dead orders: why they died, and the careful way back."""

import pytest

from tests.browser.dying import BAD, GOOD, dead_orders, good_orders
from tests.browser.screen import Screen
from tests.contracts.protocols.sns import Sns, Webhook
from tests.services.server import Server


@pytest.mark.parametrize("with_scripts", [True, False])
def test_the_good_orders_go_back_in_five_clicks(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook, with_scripts: bool
) -> None:
    dead_orders(sns, server, webhook)
    screen.scripts(on=with_scripts)
    screen.open(f"{server.url}/")
    screen.press("Look")
    assert "server_error 503" in screen.text("tr.chosen")
    screen.press(f"Redrive all {GOOD}")
    screen.click("input[value=fast]")
    screen.press("Start in 5 seconds")
    screen.wait_for("Until then Cancel undoes all", reload=not with_scripts)
    server.advance(10)
    screen.wait_for("completed", "#state", reload=not with_scripts)
    came = sorted(webhook.next().document["Message"] for _ in range(GOOD))
    assert came == good_orders()
    assert webhook.is_idle
    screen.press("Back to the dead letters")
    screen.wait_for(f"{BAD} waiting", reload=not with_scripts)
    assert "client_error 400" in screen.text("tr.chosen")
