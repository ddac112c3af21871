"""Every page suits everybody: read aloud, in both themes, on a telephone, without a mouse."""

from typing import Final

from tests.browser.dying import dead_orders
from tests.browser.screen import Screen
from tests.browser.services import make_services
from tests.contracts.protocols.sns import Sns, Webhook
from tests.services.server import Server

#: What a theme can spoil: the rest of a page is the same in both.
_OF_COLOUR: Final = ("color-contrast", "link-in-text-block")


def test_every_page_suits_everybody_in_both_themes_and_on_a_telephone(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.open(f"{server.url}/")
    screen.press("Look")
    room = screen.url.partition("/dead-letters")[0]
    letter = screen.find("tr[data-row] td a").get_attribute("href") or ""
    paths = [
        *(f"{server.url}/_redrive/console/{path}" for path in ("", "keys", "login")),
        *(
            f"{room}/{path}"
            for path in (
                "dead-letters",
                "queues",
                "topics",
                "endpoints?state=all",
                "messages",
            )
        ),
        *(
            f"{room}/dead-letters/{dead.name}{path}"
            for path in ("", "?cause=all", "/plan?what=all&cause=all")
        ),
        *(f"{room}/queues/{dead.name}{path}" for path in ("", "/messages", "/send")),
        letter,
        f"{letter.partition('?')[0]}/edit",
    ]
    for path in paths:
        _suits_everybody(screen, path)


def test_every_room_without_dead_letters_suits_everybody(screen: Screen, sns: Sns, server: Server) -> None:
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


def test_every_page_of_a_service_suits_everybody(screen: Screen, sns: Sns, server: Server) -> None:
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
        *(f"../../settings{path}" for path in ("", "/keys", f"/keys/{things.access_key}")),
    ]
    for path in paths:
        _suits_everybody(screen, f"{room}/{path}")


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
