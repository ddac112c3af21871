"""The console does what it seems to do: selections, searches, keys and commands mean what stands on the screen."""

import re
from typing import Final

from selenium.webdriver.common.keys import Keys

from tests.browser.dying import BAD, GOOD, dead_orders, order
from tests.browser.screen import Screen
from tests.contracts.aws.sns.client import Sns, Webhook
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, Queue
from tests.services.server import Server

ROOM: Final = f"/_redrive/console/{ACCOUNT}/{REGION}"
#: Numbers of rows that are laid out whenever the page's root changes its class.
_ROWS_BY_CLASS: Final = """
window.laidOut = {};
new MutationObserver(() => {
  const rows = [...document.querySelectorAll("tr[data-row]")].filter((row) => row.offsetParent);
  window.laidOut[document.documentElement.className] = rows.length;
}).observe(document, { subtree: true, attributeFilter: ["class"] });
"""
#: The number that the plan names in its title.
_PLANNED: Final = "return Number(document.querySelector('h1').innerText.match(/[\\d,]+/)[0])"


def workbench(server: Server, dead: Queue, query: str = "") -> str:
    return f"{server.url}{ROOM}/dead-letters/{dead.name}{query}"


def test_a_selection_takes_the_primary_button_and_its_key_over(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(workbench(server, dead))
    assert screen.text("#picked") == f"{GOOD + BAD} messages"
    for box in ("1", "2"):
        screen.click(f"#letters [data-row]:nth-child({box}) input[name=id]")
    assert screen.text("#picked") == "2 selected"
    assert screen.text("[data-redrive]").startswith("Redrive 2 messages…")
    screen.leaving(lambda: screen.keys("r"))
    assert "what=picked" in screen.url
    assert screen.run(_PLANNED) == 2


def test_a_search_looks_at_all_causes_and_is_what_goes_back(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(workbench(server, dead))
    screen.fill("#q", "body.order:400000,400001,503003")
    screen.leaving(lambda: screen.keys(Keys.ENTER))
    screen.wait_for("3 found")
    screen.leaving(lambda: screen.click("[data-redrive]"))
    assert screen.run(_PLANNED) == 3
    command = screen.text("#command")
    assert "--search body.order:400000,400001,503003 " in command
    screen.click("input[value=fast]")
    screen.press("Start anyway")
    server.advance(10)
    screen.wait_for("Completed", "#state")
    left = [
        *(order(400, each) for each in range(BAD) if each > 1),
        *(order(503, each) for each in range(GOOD) if each != 3),
    ]
    screen.open(workbench(server, dead))
    assert screen.text("#picked") == f"{len(left)} messages"


def test_a_term_that_is_not_known_is_refused_at_its_field(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(workbench(server, dead, "?q=bogus:1"))
    assert screen.find("#q").get_attribute("aria-invalid") == "true"
    assert "There is no term “bogus”. Did you mean body.bogus:1?" in screen.text("#q-refused")
    assert screen.find("#q").get_attribute("value") == "bogus:1"
    screen.complaints()  # the browser notes the 400


def test_keys_lead_through_lists_and_help_is_there_on_every_page(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(f"{server.url}{ROOM}/queues")
    screen.leaving(lambda: screen.keys("g", "d"))
    screen.leaving(lambda: screen.keys("j", Keys.ENTER))
    assert f"/dead-letters/{dead.name}" in screen.url
    screen.leaving(lambda: screen.keys("j", Keys.ENTER))
    assert "cause=" in screen.url
    screen.keys("?")
    assert "plan a redrive of the selection or the search" in screen.text("#shortcuts[open]")
    screen.keys(Keys.ESCAPE)
    screen.until(lambda: not screen.all("#shortcuts[open]"))


def test_a_theme_that_was_chosen_is_there_before_the_script(screen: Screen, server: Server) -> None:
    screen.media(prefers_color_scheme="light")
    screen.open(f"{server.url}{ROOM}/queues")
    light = _ground(screen)
    screen.keys("t")
    dark = _ground(screen)
    assert dark != light
    screen.scripts(on=False)
    screen.open(f"{server.url}{ROOM}/topics")
    assert _ground(screen) == dark
    assert not screen.find("[data-act=theme]").is_displayed()


def _ground(screen: Screen) -> str:
    return screen.find("main").value_of_css_property("background-color")


def test_the_palette_finds_names_and_message_ids_from_any_page(
    screen: Screen, sns: Sns, server: Server
) -> None:
    queue = sns.sqs.queue()
    screen.open(f"{server.url}{ROOM}/alarms")
    screen.keys("/")
    screen.find("#palette input").send_keys(queue.name[:4])
    screen.wait_for(queue.name, "#found")
    screen.leaving(lambda: screen.keys(Keys.ENTER))
    assert screen.url.endswith(f"/queues/{queue.name}")
    screen.keys("/")
    screen.find("#palette input").send_keys("6f1c2a9e-0000")
    screen.wait_for("Trace message 6f1c2a9e-0000", "#found")


def test_commands_name_the_server_and_the_account_that_they_were_made_for(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(workbench(server, dead, "/plan?what=all&cause=all"))
    command = screen.text("#command")
    assert f"redrive dlq redrive {dead.name}" in command
    assert f"--url {server.url} --region {REGION}" in command
    assert command.startswith(f"AWS_ACCESS_KEY_ID={ACCOUNT} ") == (ACCOUNT != "000000000000")


def test_a_dead_letter_leads_to_every_copy_of_its_publication(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(workbench(server, dead))
    screen.leaving(lambda: screen.click("#letters [data-row] a"))
    link = screen.find("dl.facts a[href*='/messages/']")
    published = link.text
    assert re.fullmatch(r"[0-9a-f-]{36}", published)
    screen.leaving(link.click)
    assert published in screen.url
    assert "dead letter" in screen.text()


def test_the_clock_goes_to_the_next_attempt_and_never_where_there_is_none(
    screen: Screen, sns: Sns, server: Server
) -> None:
    screen.open(f"{server.url}{ROOM}/queues")
    before = screen.text(".clock b")
    assert "no attempt is due" in screen.text(".clock")
    assert not screen.find(".clock button[value=next]").is_enabled()
    screen.open(f"{server.url}{ROOM}/queues?")
    assert screen.text(".clock b") == before


def test_a_list_follows_what_is_typed_and_a_half_typed_term_is_no_trouble(
    screen: Screen, sns: Sns, server: Server
) -> None:
    first, second = sns.sqs.queue(), sns.sqs.queue()
    screen.open(f"{server.url}{ROOM}/queues?prefix=")
    assert {first.name, second.name} <= {each.text for each in screen.all("tbody th a")}
    screen.find("#q").send_keys(second.name)
    screen.until(lambda: [each.text for each in screen.all("tbody th a")] == [second.name])
    assert screen.url.endswith(f"prefix={second.name}")
    assert screen.run("return document.activeElement.id") == "q"
    screen.open(f"{server.url}{ROOM}/audit")
    screen.find("#q").send_keys("by:")
    screen.wait_for("by: needs a value")
    assert not screen.find("#trouble").is_displayed()


def test_rows_below_the_fold_are_laid_out_after_the_first_frame_unless_the_page_is_loaded_again(
    screen: Screen, sns: Sns, server: Server
) -> None:
    for _ in range(30):
        sns.sqs.queue()
    screen.before_each_page(_ROWS_BY_CLASS)
    screen.open(f"{server.url}{ROOM}/queues")
    screen.until(lambda: len(screen.run("return laidOut")) == 2)
    assert screen.run("return laidOut") == {"early": 24, "": 30}
    screen.leaving(lambda: screen.run("location.reload()"))  # by which one comes back to a row further down
    assert screen.run("return laidOut") == {}
