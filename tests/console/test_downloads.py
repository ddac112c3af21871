"""Downloads of dead letters: of a choice, bounded, and with no body where bodies are hidden."""

import csv
import io

import orjson
import pytest

from redrive.console.pages import downloads
from tests.console.world import ROOM, make_world, visiting

_FILE = f"{ROOM}/dead-letters/orders-dead/download"


async def test_a_choice_is_downloaded_as_json_lines_with_every_digit() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        await world.die('{"order":12345678901234567890}', '{"order":2}')
        await world.die("refused", note=None)
        cause = f"{world.orders.id}:server_error%20503"
        answer = await visitor.get(f"{_FILE}?cause={cause}")
        assert answer.content_type == "application/x-ndjson"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="orders-dead.jsonl"'
        rows = [orjson.loads(line) for line in answer.body.splitlines()]
        assert [row["body"] for row in rows] == ['{"order":2}', '{"order":12345678901234567890}']
        assert {row["failure"] for row in rows} == {"server_error 503"}
        found = await visitor.get(f"{_FILE}?cause=all&q=refused")
        assert orjson.loads(found.body)["body"] == "refused"


async def test_a_table_computes_nothing_that_a_stranger_sent() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        await world.die("=1+1", 'plain, "quoted"\nand more')
        answer = await visitor.get(f"{_FILE}?format=csv")
        rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
        assert [row["body"] for row in rows] == ['plain, "quoted"\nand more', "'=1+1"]
        assert (await visitor.get(f"{_FILE}?format=xml")).status == 400


async def test_a_download_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "LETTERS_MAX", 4)
    monkeypatch.setattr(downloads, "_SLICE", 2)
    async with visiting() as visitor:
        world = await make_world(visitor)
        await world.die(*(str(each) for each in range(10)))
        assert len((await visitor.get(_FILE)).body.splitlines()) == 4


async def test_a_search_that_cannot_be_read_is_refused_with_its_reason() -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        refused = await visitor.get(f"{_FILE}?q=arn:aws:sqs:us-east-1")
        assert refused.status == 400
        assert "There is no term “arn”" in refused.body.decode()


async def test_nothing_is_downloaded_where_bodies_are_hidden() -> None:
    async with visiting(console_bodies="hidden") as visitor:
        world = await make_world(visitor)
        await world.die("MARKED")
        answer = await visitor.get(_FILE)
        assert (answer.status, b"MARKED" in answer.body) == (400, False)
