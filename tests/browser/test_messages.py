"""Stories of one message: mended, seen as it arrives, and found among many."""

import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.browser.dying import ALL_DEAD, BAD, came, dead_orders, order, waiting
from tests.browser.screen import Screen
from tests.contracts.aws.sns.client import Sns, Topic, Webhook
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, Queue, entries
from tests.services.server import Server, serving

MANY = 2_100  # a slice of a search looks at 2,000


def test_a_wrong_currency_is_mended_to_the_digit_and_goes_to_its_subscription_alone(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    (topic,) = sns.client.list_topics()["Topics"]
    beside = Topic(sns, topic["TopicArn"]).queue()
    screen.open(f"{server.url}/")
    screen.press(ALL_DEAD)
    screen.follow("a.cause[href*='400']")
    screen.follow("#letters a")
    screen.press("Edit…")
    body = screen.find("textarea").get_attribute("value") or ""
    screen.fill("textarea", body.replace("}", ""))
    screen.press("Check")
    assert re.search(r"longer JSON: line \d+, column \d+", screen.text())
    primary, replace = screen.all("form .bar button")
    assert (primary.text, replace.text) == ("Check", "Replace and redrive")
    assert primary.get_attribute("class") == "primary"
    screen.press("Replace and redrive")  # is refused: the box beneath the field is not ticked
    assert "Send it although it is not JSON" in screen.text()
    screen.fill("textarea", body.replace("EURO", "EUR"))
    screen.press("Check")
    assert [line.text.strip() for line in screen.all(".diff .gone, .diff .new")] == [
        '3 -   "currency": "EURO",',
        '3 +   "currency": "EUR",',
    ]
    assert [mark.text for mark in screen.all(".diff mark") if mark.text] == ["O"]
    screen.press("Replace and redrive")
    screen.wait_for("was sent with its new body")
    server.advance(1)
    (mended,) = came(webhook, 1)
    assert re.sub(r"\s", "", mended) in [
        re.sub(r"\s", "", order(400, each)).replace("EURO", "EUR") for each in range(BAD)
    ]
    assert '"paid": 12345678901234567890' in mended
    assert beside.receive() == []  # a subscription of the same topic is not told again
    assert sum('"order": 400' in each for each in waiting(server, dead)) == BAD - 1


def test_a_mended_order_is_there_once_whenever_the_server_is_killed(
    screen: Screen, webhook: Webhook, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'redrive.db'}"
    with serving(store, "--clock", "simulated", "--allow-reset", directory=tmp_path) as server:
        dead = dead_orders(Sns(server), server, webhook)
        workbench = f"{server.url}/_redrive/console/{ACCOUNT}/{REGION}/dead-letters/{dead.name}"
        before = waiting(server, dead)
        mended = _edited(screen, workbench)
        server.process.send_signal(signal.SIGSTOP)
        with _pressing(screen):
            while not _is_unread(server):  # the form has arrived, and nobody has read it
                pass
            server.kill()
        server.start()
        assert waiting(server, dead) == before
        assert webhook.is_idle
        mended = _edited(screen, workbench)
        with _pressing(screen):
            sent = webhook.next()  # it has left its queue, and its endpoint is about to answer
            server.kill()
        server.start()
        server.advance(120)  # past the lease of who pushed it
        assert _plain(sent.document["Message"]) == mended
        while not webhook.is_idle:  # what was under way at the kill may come a second time, and nothing else
            assert _plain(webhook.next().document["Message"]) == mended
        assert sum('"order": 400' in each for each in waiting(server, dead)) == BAD - 1
        screen.open(f"{workbench.partition('/dead-letters')[0]}/messages/{sent.document['MessageId']}")
        screen.wait_for("This message is in no queue here")
        assert [each for each in screen.complaints() if "ERR_" not in each and "htmx:error" not in each] == []
        screen.leave()


@contextmanager
def _pressing(screen: Screen) -> Iterator[None]:
    """Press the last button in a thread beside a block, which kills the server, and return when the browser knows.

    The driver waits for the page that comes of it, and a browser sends a form a second time whose connection is lost.
    """
    with ThreadPoolExecutor(1) as beside:
        pressed = beside.submit(screen.click, "button[value=replace]")
        yield
        pressed.result()
    screen.until(lambda: "ERR_" in screen.text("body") or "was sent with its new body" in screen.text("body"))


def _is_unread(server: Server) -> bool:
    """True while bytes lie at the server that it has not read (Linux: rx_queue of its connections)."""
    port = f":{int(server.url.rpartition(':')[2]):04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return any(row[1].endswith(port) and row[3] == _ESTABLISHED and row[4][-8:] != "0" * 8 for row in rows)


_ESTABLISHED: Final = "01"


def _edited(screen: Screen, workbench: str) -> str:
    """Mend the currency of the newest order that was refused, up to the last button; its new body without blanks."""
    screen.open(workbench)
    screen.follow("a.cause[href*='400']")
    screen.follow("#letters a")
    screen.press("Edit…")
    body = (screen.find("textarea").get_attribute("value") or "").replace("EURO", "EUR")
    screen.fill("textarea", body)
    screen.press("Check")
    return _plain(body)


def _plain(body: str) -> str:
    return re.sub(r"\s", "", body)


def test_a_message_is_seen_as_it_arrives_and_is_not_received_by_looking(
    screen: Screen, sns: Sns, server: Server
) -> None:
    queue = sns.sqs.queue()
    screen.open(f"{server.url}/_redrive/console/{sns.account}/{sns.region}/queues/{queue.name}/messages")
    screen.run("window.sameDocument = true")
    queue.send("first")
    screen.wait_for("first", "#live")
    screen.click("#live-switch")
    assert screen.text("#live-switch") == "Paused"
    queue.send("second")
    screen.pass_time(10)
    screen.wait_for("1 newer: show it")
    assert "second" not in screen.text()
    screen.click("#newer button")
    screen.wait_for("second")
    assert screen.text("#live-switch") == "Paused"
    screen.click("#live-switch")
    screen.run("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    asked = screen.requests()
    screen.pass_time(10)
    assert screen.requests() == asked
    assert screen.run("return window.sameDocument")
    received = queue.receive(AttributeNames=["ApproximateReceiveCount"])
    assert {each["Attributes"]["ApproximateReceiveCount"] for each in received} == {"1"}


def test_an_order_is_found_among_many_and_the_link_finds_it_again(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    fill(dead)
    room = f"{server.url}/_redrive/console/{sns.account}/{sns.region}"
    query = quote("body.order:503007")
    screen.open(f"{room}/dead-letters/{dead.name}?cause=all&q={query}")
    screen.wait_for(f"1 found among {MANY + 16:,} messages looked at.")
    assert screen.run("return document.getElementById('searched').value") == MANY + 16
    screen.open(screen.url)
    screen.wait_for("1 found among")
    screen.follow("#letters a")
    assert "3 attempts" in screen.text()
    assert len(screen.all("svg.timeline circle")) == 3
    moments = [each.get_attribute("datetime") for each in screen.all("[aria-label=Attempts] time")]
    assert len(set(moments)) == 3
    assert moments == sorted(moments)


def test_a_search_stops_when_it_is_told_to(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    fill(dead)
    screen.before_each_page(
        "const real = window.fetch; window.fetch = async (...all) => {"
        " if (String(all[0]).includes('/search')) await new Promise((go) => { window.letGo = go; });"
        " return real(...all); };"
    )
    room = f"{server.url}/_redrive/console/{sns.account}/{sns.region}"
    screen.open(f"{room}/dead-letters/{dead.name}?cause=all&q=absent")
    screen.until(lambda: screen.run("return Boolean(window.letGo)"))
    screen.click("#search-stop")
    screen.run("window.letGo()")
    screen.until(lambda: not screen.find("#search progress").is_displayed())
    assert "0 found among" in screen.text("#search")


def test_messages_of_a_queue_are_searched_as_one_types_and_read_beside_the_list(
    screen: Screen, sns: Sns, server: Server
) -> None:
    queue = sns.sqs.queue()
    bodies = [f'{{"order": {each}, "city": "{"Oslo" if each % 4 else "Bergen"}"}}' for each in range(40)]
    for first in range(0, 40, 10):
        queue.send_batch(*entries(*bodies[first : first + 10]))
    screen.size(1280)
    screen.open(f"{server.url}/_redrive/console/{sns.account}/{sns.region}/queues/{queue.name}/messages")
    screen.find("#facets a[href*=Bergen]")
    screen.find("#q").send_keys("body.city:Bergen")
    screen.wait_for("10 found among 40 messages looked at.", "#search")
    assert len(screen.all("#letters tr")) == 10
    assert screen.url.endswith("q=body.city%3ABergen")
    screen.fill("#q", "size:x")
    screen.wait_for("is not an amount", "#q-refused")
    screen.open(screen.url.partition("?")[0])
    screen.click("#letters tr:nth-child(3) td.full")
    screen.wait_for('"order": 2,', "#preview")
    assert "Bergen" not in screen.text("#preview")
    screen.keys("n", "n")
    screen.wait_for('"order": 4,', "#preview")
    screen.keys("b")
    screen.wait_for('"order": 3,', "#preview")
    screen.open(screen.url)
    screen.wait_for('"order": 3,', "#preview")
    screen.run("window.row = document.querySelector('[data-open]')")
    queue.send('{"order": 40}')
    screen.wait_for("41 waiting", "#live")
    assert screen.run("return row.isConnected && row.hasAttribute('data-open')")
    screen.click("#preview [data-act=shut]")
    assert "open=" not in screen.url
    assert queue.counts() == (41, 0, 0)
    received = queue.receive(AttributeNames=["ApproximateReceiveCount"])
    assert {each["Attributes"]["ApproximateReceiveCount"] for each in received} == {"1"}


def test_a_value_that_dead_letters_share_is_searched_by_one_click(
    screen: Screen, sns: Sns, server: Server, webhook: Webhook
) -> None:
    dead = dead_orders(sns, server, webhook)
    screen.size(1280)
    screen.open(f"{server.url}/_redrive/console/{sns.account}/{sns.region}/dead-letters/{dead.name}")
    screen.leaving(lambda: screen.click("#facets a[href*='status%3A400']"))
    assert len(screen.all("#letters [data-row]")) == BAD
    assert f"Redrive the {BAD} found…" in screen.text(".actions")
    screen.keys("n")
    screen.wait_for("Client error 400", "#preview")
    screen.leaving(lambda: screen.keys("e"))
    assert "Edit" in screen.text("h1")


def fill(queue: Queue) -> None:
    """Send more than a slice of a search looks at."""
    for start in range(0, MANY, 10):
        queue.send_batch(*entries(*(f'{{"order": {each}}}' for each in range(start, start + 10))))
