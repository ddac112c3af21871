"""Every page suits everybody: read aloud, in both themes, on a telephone, without a mouse."""

from typing import Final

import pytest

from tests.browser.dying import ALL_DEAD, dead_orders
from tests.browser.screen import Screen
from tests.browser.services import make_services
from tests.contracts.aws.sns.client import Sns, Webhook
from tests.contracts.azure.grid import Grid, Subscriber
from tests.contracts.azure.namespaces import GROUP, SUBSCRIPTION
from tests.services.server import Server

#: What a theme can spoil: the rest of a page is the same in both.
_OF_COLOUR: Final = ("color-contrast", "link-in-text-block")

_PICK_THREE: Final = """
[...document.querySelectorAll("#letters input[name=id]")].slice(0, 3).forEach(box => box.click());
"""
#: What somebody at a keyboard holds: the element with the focus, the boxes that are ticked, the place of the page.
_HELD: Final = """
const at = document.activeElement;
window.heldElement ??= new Map();
if (!heldElement.has(at)) heldElement.set(at, heldElement.size);
return {
  element: heldElement.get(at), name: at.outerHTML, scrolled: scrollY,
  picked: document.querySelectorAll("input[name=id]:checked").length,
};
"""
_MOVING: Final = """
const seconds = text => Math.max(...text.split(",").map(parseFloat));
return document.getAnimations().length + [...document.querySelectorAll("*")].filter(
  each => seconds(getComputedStyle(each).transitionDuration) > 0).length;
"""
#: What a picture says with a fill or a stroke, in a colour that is the ground's.
_UNSEEN: Final = """
const ground = getComputedStyle(document.body).backgroundColor;
const drawn = "svg text, svg circle, svg .mark:not(.hollow), svg polyline, tr.chosen, .side [aria-current]";
return [...document.querySelectorAll(drawn)].filter(each => {
  const style = getComputedStyle(each);
  if (each.matches("tr, a")) return style.outlineStyle === "none";
  return each.matches("polyline") ? style.stroke === ground : style.fill === ground;
}).map(each => each.outerHTML);
"""
#: The lines of the header that a telephone's screen can spare (CSS pixels).
_HEADER_MAX: Final = 92
#: A tablet, and a window of 1,280 pixels at 200 %.
_BETWEEN: Final = (820, 640)
_HEADER: Final = "return document.querySelector('header').offsetHeight"
#: How far the bar of actions stands below the window's lower edge.
_OUT_OF_SIGHT: Final = """
const bar = document.querySelector(".actions");
return bar ? Math.max(0, bar.getBoundingClientRect().bottom - innerHeight) : 0;
"""
#: What is seen and does nothing where scripts are off, and what does something that the tabulator never comes to.
_OUT_OF_REACH: Final = """
const needsScripts = "button[type=button], a:not([href]), [onclick]";
const controls = "a[href], button, input, select, textarea, summary";
return [...document.querySelectorAll(`${needsScripts}, ${controls}`)].filter(each =>
  each.checkVisibility() && (each.matches(needsScripts) || each.tabIndex < 0)).map(each => each.outerHTML);
"""
#: All pages in one test take longer on a busy machine than one test may.
_TURNS: Final = 3
_IN_TURNS: Final = pytest.mark.parametrize("turn", range(_TURNS))


@_IN_TURNS
def test_every_page_suits_everybody_in_both_themes_and_on_a_telephone(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook, turn: int
) -> None:
    dead = dead_orders(sns, server, webhook)
    (subscription,) = sns.client.list_subscriptions()["Subscriptions"]
    topic, identifier = subscription["SubscriptionArn"].split(":")[-2:]
    screen.open(f"{server.url}/")
    screen.press(ALL_DEAD)
    room = screen.url.partition("/dead-letters")[0]
    letter = screen.find("#letters a").get_attribute("href") or ""
    screen.open(letter)
    trace = screen.find("dl.facts a[href*='/messages/']").get_attribute("href") or ""
    paths = [
        *(f"{server.url}/_redrive/console/{path}" for path in ("", "keys", "login", "find?q=o")),
        *(
            f"{room}/{path}"
            for path in (
                "dead-letters",
                "redrives",
                "queues",
                "topics",
                "endpoints?state=all",
                "messages",
                "views",
            )
        ),
        *(
            f"{room}/dead-letters/{dead.name}{path}"
            for path in ("", "?cause=all", "?cause=all&q=EURO", "/plan?what=all&cause=all")
        ),
        *(f"{room}/queues/{dead.name}{path}" for path in ("", "/messages", "/send", "/import")),
        *(
            f"{room}/topics/{topic}{path}"
            for path in ("", "/publish", f"/{identifier}", f"/{identifier}/test")
        ),
        *(f"{room}/{path}" for path in ("new-queue", f"dead-letter-queue?queue={dead.name}", "metrics")),
        letter,
        f"{letter.partition('?')[0]}/edit",
        f"{room}/queues/{dead.name}/messages/{letter.partition('?')[0].rpartition('/')[2]}",
        trace,
    ]
    for path in paths[turn::_TURNS]:
        _suits_everybody(screen, path)


def test_every_room_without_dead_letters_suits_everybody(
    screen: Screen, sns: Sns, server: Server, grid: Grid, subscriber: Subscriber
) -> None:
    sns.sqs.queue().send("order")
    server.advance(120)
    sns.topic().publish("order")
    room = f"{server.url}/_redrive/console/000000000000/us-east-1"
    for path in (
        "schedules",
        "schedules?plan=managed",
        "schedules?numRetries=1e9",
        "event-grid",
        "tail",
        "metrics",
    ):
        _suits_everybody(screen, f"{room}/{path}")
    grid.subscribe(grid.topic().id, subscriber, container="dead")
    screen.open(f"{server.url}/_redrive/console/{SUBSCRIPTION}/{GROUP}/event-grid")
    _suits_everybody(screen, screen.find("main tbody a").get_attribute("href") or "")


@_IN_TURNS
def test_every_page_of_a_service_suits_everybody(screen: Screen, sns: Sns, server: Server, turn: int) -> None:
    room = f"{server.url}/_redrive/console/000000000000/us-east-1"
    things = make_services(server)
    paths = [
        *(f"functions{path}" for path in ("", "/bill", "/bill/invoke")),
        *(f"logs{path}" for path in ("", "/streams?name=checkout/api", "/group?name=checkout/api")),
        *(
            f"alarms{path}"
            for path in ("", "/alarm?name=waiting", "/state?name=waiting", "/new?queue=orders")
        ),
        *(f"stacks{path}" for path in ("", "/shop", "/shop/template", "/shop/delete")),
        *(f"kms{path}" for path in ("", f"/{things.key}", f"/{things.key}/delete")),
        *(f"apis{path}" for path in ("", f"/{things.api}/route?key=POST+%2F")),
        *(f"event-sources{path}" for path in ("", f"/{things.mapping}?record=x")),
        "audit?q=bogus:1",
        *(f"../../settings{path}" for path in ("", "/health", "/keys", f"/keys/{things.access_key}")),
    ]
    for path in paths[turn::_TURNS]:
        _suits_everybody(screen, f"{room}/{path}")
    assert all("status of 422" in each for each in screen.complaints())  # of the search with a term not known


def test_asking_again_moves_neither_focus_nor_picks(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(f"{server.url}/")
    screen.press(ALL_DEAD)
    screen.run(_PICK_THREE)
    for place, waiting in (("tr[data-row]:nth-child(3) input[name=id]", 17), ("#live a.cause", 18)):
        screen.run(f"document.querySelector('{place}').focus()")
        before = screen.run(_HELD)
        dead.send("one more")
        screen.pass_time(20)
        screen.wait_for(f"{waiting} waiting")
        assert screen.run(_HELD) == before, place
    assert before["picked"] == 3
    assert screen.text("#picked") == "3 selected"


def test_less_motion_and_few_colours_are_readable(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    room = f"{server.url}/_redrive/console/{sns.account}/{sns.region}"
    screen.media(prefers_reduced_motion="reduce", forced_colors="active")
    for path in (f"dead-letters/{dead.name}", "schedules?outage=4h"):
        screen.open(f"{room}/{path}")
        assert screen.axe(*_OF_COLOUR) == [], path
        assert screen.run(_MOVING) == 0, path
        assert screen.run(_UNSEEN) == [], path


def _suits_everybody(screen: Screen, path: str) -> None:
    screen.media(prefers_color_scheme="light")
    screen.size(1280)
    screen.open(path)
    for width in (1280, 320):
        screen.size(width)
        screen.media(prefers_color_scheme="light")
        assert screen.axe() == [], (path, width)
        screen.media(prefers_color_scheme="dark")
        assert screen.axe(*_OF_COLOUR) == [], (path, width, "dark")
        across = screen.run("return document.documentElement.scrollWidth")
        assert across <= width, (path, width)
        assert screen.run(_OUT_OF_SIGHT) < 1, (path, width)
    assert screen.run(_HEADER) <= _HEADER_MAX, path
    for width in _BETWEEN:
        screen.size(width)
        across = screen.run("return document.documentElement.scrollWidth")
        assert across <= width, (path, width)
    screen.scripts(on=False)
    screen.open(path)
    assert screen.run(_OUT_OF_REACH) == [], (path, "without scripts")
    screen.scripts(on=True)
