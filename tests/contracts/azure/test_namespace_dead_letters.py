"""Events of a namespace that nobody could process: in a queue to look into and send back, and in blobs."""

import datetime as dt
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from tests.contracts.azure.namespaces import GROUP, SUBSCRIPTION, Shop, counts, make_container, orders, tokens
from tests.services.postgres import DatabaseMaker
from tests.services.server import Server, serving

MINUTE = 60
LETTERS = "dead-letters:namespaces:shop:orders:billing"
SCOPE = {"subscription": SUBSCRIPTION, "group": GROUP}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, database_maker: DatabaseMaker
) -> Iterator[Server]:
    """A server on each store that keeps its blobs in a folder of its own, where a test may kill it."""
    directory = tmp_path_factory.mktemp("namespaces")
    flags = ("--clock", "simulated", "--allow-reset", "--blob-store", str(directory / "blobs"))
    with ExitStack() as stack:
        sqlite = f"sqlite:///{directory}/redrive.db"
        store = sqlite if request.param == "sqlite" else stack.enter_context(database_maker.database())
        yield stack.enter_context(serving(store, *flags, directory=directory))


@pytest.fixture
def server(started: Server, blobs: Path) -> Server:
    """The server, empty."""
    started.reset()
    shutil.rmtree(blobs.parent, ignore_errors=True)
    make_container(started)
    return started


@pytest.fixture
def blobs(started: Server) -> Path:
    """The container's folder."""
    return started.log.parent / "blobs" / "letters" / "dead"


def letters(shop: Shop) -> list[Any]:
    """Return the dead letters in the dead-letter queue."""
    query = urlencode({**SCOPE, "queue": LETTERS})
    status, answer = shop.server.ask("GET", f"/_redrive/dead-letters?{query}")
    assert status == 200, answer
    return list(orjson.loads(answer)["letters"])


def kept(blobs: Path) -> dict[str, Any]:
    """Every blob by its name."""
    files = sorted(blobs.rglob("*.json")) if blobs.exists() else []
    return {str(file.relative_to(blobs)): orjson.loads(file.read_bytes()) for file in files}


def moment(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


def test_a_rejected_event_is_dead_lettered_at_once(shop: Shop) -> None:
    shop.subscribe(letters=True)
    shop.publish(1)
    shop.consumer().reject(lock_tokens=tokens(shop.receive()))
    (letter,) = letters(shop)
    assert (letter["attempts"], letter["reason"]) == (1, "rejected")
    assert letter["from"] == {"queue": "namespaces:shop:orders:billing"}
    assert orjson.loads(letter["body"])["data"] == {"order": 1}


def test_an_exhausted_event_is_dead_lettered_without_a_receive(shop: Shop) -> None:
    shop.subscribe(letters=True, max_delivery_count=2)
    shop.publish(1)
    for _ in range(2):
        shop.receive()
        shop.server.advance(61)
    assert [letter["attempts"] for letter in letters(shop)] == [2]


def test_an_expired_event_is_dead_lettered_without_a_receive(shop: Shop) -> None:
    shop.subscribe(letters=True, event_time_to_live=dt.timedelta(minutes=5))
    shop.publish(1)
    shop.server.advance(5 * MINUTE - 1)
    assert letters(shop) == []
    shop.server.advance(1)
    assert [letter["attempts"] for letter in letters(shop)] == [0]


def test_dead_letters_are_listed_and_sent_back(shop: Shop) -> None:
    shop.subscribe(letters=True)
    shop.publish(1)
    shop.consumer().reject(lock_tokens=tokens(shop.receive()))
    _, answer = shop.server.ask("GET", f"/_redrive/dead-letter-queues?{urlencode(SCOPE)}")
    (queue,) = orjson.loads(answer)["queues"]
    assert (queue["queue"], queue["letters"]) == (LETTERS, 1)
    ids = [letter["id"] for letter in letters(shop)]
    wish = orjson.dumps({"queue": LETTERS, "ids": ids})
    status, answer = shop.server.ask("POST", f"/_redrive/dead-letters?{urlencode(SCOPE)}", wish)
    assert (status, orjson.loads(answer)) == (200, {"moved": 1})
    again = shop.receive()
    assert (orders(again), counts(again), letters(shop)) == ([1], [1], [])


def test_a_dead_letter_is_a_blob_after_five_minutes(shop: Shop, blobs: Path) -> None:
    shop.subscribe("Billing", letters=True, max_delivery_count=1)
    published_at = shop.server.now()
    shop.publish(7)
    shop.receive("billing")
    shop.server.advance(61)
    shop.server.advance(4 * MINUTE)
    assert kept(blobs) == {}
    shop.server.advance(61)
    ((name, content),) = kept(blobs).items()
    folder, *hour, _ = name.rsplit("/", 5)
    assert folder == "shop/orders/Billing"
    assert [str(int(part)) for part in hour] == hour  # nothing is padded
    began = dt.datetime(*map(int, hour), tzinfo=dt.UTC).timestamp()
    assert began <= shop.server.now() < began + 3600 + 10 * MINUTE
    ((letter, event),) = [(one["deadLetterProperties"], one["event"]) for one in content]
    assert (event["type"], event["data"]) == ("Order.Placed", {"order": 7})
    assert list(letter) == [
        "deadletterreason",
        "deliveryattempts",
        "deliveryresult",
        "publishutc",
        "deliveryattemptutc",
    ]
    assert letter["deadletterreason"] == "Maximum delivery attempts was exceeded."
    assert letter["deliveryattempts"] == 1
    assert letter["deliveryresult"] == "Event was not acknowledged nor rejected."
    for field in ("publishutc", "deliveryattemptutc"):
        assert published_at <= moment(letter[field]) < published_at + 5


@pytest.mark.parametrize("how", ["rejected", "too old"])
def test_a_blob_says_how_it_came_to_that(shop: Shop, blobs: Path, how: str) -> None:
    shop.subscribe(letters=True, event_time_to_live=dt.timedelta(minutes=5))
    shop.publish(1)
    if how == "rejected":
        shop.consumer().reject(lock_tokens=tokens(shop.receive()))
    else:
        shop.server.advance(5 * MINUTE)
    shop.server.advance(5 * MINUTE + 2)
    ((letter,),) = kept(blobs).values()
    said = letter["deadLetterProperties"]
    told = [said[name] for name in ("deadletterreason", "deliveryattempts", "deliveryresult")]
    if how == "rejected":
        assert told == ["Event was rejected.", 1, "Event was rejected."]
    else:
        assert told == ["Time to live was exceeded.", 0, "Event was not acknowledged nor rejected."]


def test_a_killed_server_keeps_the_dead_letters_it_has_yet_to_write(shop: Shop, blobs: Path) -> None:
    shop.subscribe(letters=True)
    shop.publish(1, 2)
    shop.consumer().reject(lock_tokens=tokens(shop.receive()))
    shop.server.advance(1)
    shop.server.kill()
    shop.server.start()
    shop.server.advance(6 * MINUTE)
    written = [one["event"]["data"]["order"] for blob in kept(blobs).values() for one in blob]
    assert (sorted(written), len(letters(shop))) == ([1, 2], 2)


def test_without_a_destination_nothing_is_kept(shop: Shop, blobs: Path) -> None:
    shop.subscribe(letters=True)
    shop.subscribe()
    shop.publish(1)
    shop.consumer().reject(lock_tokens=tokens(shop.receive()))
    shop.server.advance(10 * MINUTE)
    assert kept(blobs) == {}
    assert (
        shop.server.ask("GET", f"/_redrive/dead-letters?{urlencode({**SCOPE, 'queue': LETTERS})}")[0] == 400
    )
