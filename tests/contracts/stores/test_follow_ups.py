"""Follow-ups of a settlement arrive in the transaction that settles the delivery, or not at all."""

import asyncio
import shutil
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from redrive.engine.ports import AttemptNote, NewDelivery, Settled, Settlement
from redrive.model.delivery import Delivery, Outcome
from redrive.model.errors import StoreUnavailable
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import DONE, LEASE_MS, NOON, Bench, bodies, refused
from tests.contracts.stores.homes import Home, in_file
from tests.contracts.stores.test_outages import PATIENCE_SECONDS, Ears

LAPSE = NOON + LEASE_MS


@pytest.fixture(params=["dead_letters", "fifo_dead_letters"])
def letters(request: pytest.FixtureRequest, dead_letters: Bench, fifo_dead_letters: Bench) -> Bench:
    """The queue that follow-ups go to."""
    return dead_letters if request.param == "dead_letters" else fifo_dead_letters


def about(letters: Bench, *texts: str, group: str | None = None) -> list[NewDelivery]:
    """Letters on their way in."""
    return [letters.new_delivery(text, group=group) for text in texts]


async def claim_sent(queue: Bench, *texts: str) -> list[Delivery]:
    """Send these bodies here and claim them."""
    await queue.send(*texts, group="g")
    return await queue.claim(limit=len(texts))


@pytest.mark.parametrize(
    "outcome", [Outcome.DELIVERED, Outcome.DEAD_LETTERED, Outcome.EXPIRED, Outcome.DROPPED], ids=str
)
async def test_follow_ups_arrive_with_every_outcome(queue: Bench, letters: Bench, outcome: Outcome) -> None:
    a, b = await claim_sent(queue, "a", "b")
    assert (
        await queue.settle(a, NOON + 7, outcome, follow_ups=[letters.new_delivery("about a", NOON + 7)])
        == DONE
    )
    assert await queue.peek() == [b]
    assert bodies(await letters.claim(NOON + 7)) == ["about a"]


@pytest.mark.parametrize("outcome", [Outcome.DELIVERED, Outcome.DEAD_LETTERED], ids=str)
async def test_a_follow_up_arrives_behind_the_dead_lettered_or_handed_over_delivery(
    queue: Bench, letters: Bench, outcome: Outcome
) -> None:
    (a,) = await claim_sent(queue, "a")
    letter = letters.new_delivery("about a", group="g")
    assert await queue.settle(a, outcome=outcome, target=letters.target, follow_ups=[letter]) == DONE
    assert await queue.peek() == []
    assert bodies(await letters.peek()) == ["a", "about a"]


async def test_a_follow_up_arrives_as_it_was_given(plain: Bench, letters: Bench) -> None:
    (a,) = await claim_sent(plain, "a")
    note = AttemptNote(1, NOON, duration_ms=7, reason="status", status=503, response="no")
    letter = letters.new_delivery("about a", group="h", delay_ms=500, origin=plain.id, attempts=1, note=note)
    letter.headers = b"{}"
    await plain.settle(a, outcome=Outcome.DROPPED, follow_ups=[letter])
    (found,) = await letters.peek()
    assert (found.message_id, found.headers, found.group_id) == (letter.message_id, b"{}", "h")
    assert (found.available_at, found.attempts, found.origin) == (NOON + 500, 1, plain.id)
    assert (found.enqueued_at, found.sent_at, found.token) == (NOON, NOON, None)
    assert await plain.store.notes(plain.id, letter.message_id) == [note]


async def test_follow_ups_of_one_settlement_may_go_to_several_queues(
    queue: Bench, dead_letters: Bench, fifo_dead_letters: Bench
) -> None:
    (a,) = await claim_sent(queue, "a")
    letters = [
        *about(dead_letters, "1"),
        *about(fifo_dead_letters, "2", group="g"),
        *about(dead_letters, "3"),
    ]
    assert await queue.settle(a, follow_ups=letters) == DONE
    assert bodies(await dead_letters.peek()) == ["1", "3"]
    assert bodies(await fifo_dead_letters.peek()) == ["2"]


async def test_back_in_the_same_group_it_stands_behind_the_others(fifo: Bench) -> None:
    a, *_ = await claim_sent(fifo, "a", "b", "c")
    assert await fifo.settle(a, follow_ups=about(fifo, "a", group="g")) == DONE
    assert bodies(await fifo.claim(LAPSE)) == ["b", "c", "a"]


async def test_a_follow_up_alone_in_its_group_is_its_head(queue: Bench) -> None:
    (a,) = await claim_sent(queue, "a")
    await queue.settle(a, follow_ups=[queue.new_delivery(text, group="g") for text in ("b", "c")])
    assert bodies(await queue.claim()) == ["b", "c"]


async def test_a_repetition_does_not_arrive(plain: Bench, fifo: Bench) -> None:
    a, b = await claim_sent(plain, "a", "b")
    await fifo.send_once("about a", "k")
    known: dict[str, Any] = {"deduplication_key": "k", "deduplicate_until": NOON + 5}
    letters = [fifo.new_delivery("about a", group="g", **known), fifo.new_delivery("about b", group="g")]
    assert await plain.settle(a, follow_ups=letters) == DONE
    assert await plain.settle(b, follow_ups=[fifo.new_delivery("about a", group="g", **known)]) == DONE
    assert bodies(await fifo.peek()) == ["about a", "about b"]


async def test_a_claim_that_is_not_met_leads_to_nothing(queue: Bench, letters: Bench) -> None:
    (late,) = await claim_sent(queue, "a")
    latest = await queue.claim_one(LAPSE)
    letter = about(letters, "a")
    for outcome in (Outcome.DELIVERED, Outcome.DROPPED):
        assert await queue.settle(late, LAPSE, outcome, follow_ups=letter) == refused("superseded")
    assert await queue.settle(
        late, LAPSE, Outcome.DEAD_LETTERED, target=letters.target, follow_ups=letter
    ) == refused("superseded")
    assert await queue.settle(latest, LAPSE) == DONE
    assert await queue.settle(latest, LAPSE, follow_ups=letter) == refused("gone")
    assert await letters.peek() == []


async def test_a_claim_in_order_that_ran_out_leads_to_nothing(fifo: Bench, letters: Bench) -> None:
    (a,) = await claim_sent(fifo, "a")
    assert await fifo.settle(a, LAPSE, follow_ups=[letters.new_delivery("about a")]) == refused("lapsed")
    assert await letters.peek() == []


async def test_each_settlement_of_a_call_has_its_own_follow_ups(queue: Bench, letters: Bench) -> None:
    seqs = [claim.seq for claim in await claim_sent(queue, *"abcdef")]
    token = (await queue.peek())[0].token or 0
    ends = [
        Settlement(seqs[0], token, follow_ups=about(letters, "a")),
        Settlement(seqs[1], token + 1, Outcome.DROPPED, follow_ups=about(letters, "b, in vain")),
        Settlement(
            seqs[2], token, Outcome.DEAD_LETTERED, target=letters.target, follow_ups=about(letters, "c")
        ),
        Settlement(seqs[3], token, Outcome.RETRY, NOON + 5),
        Settlement(seqs[4], token),
        Settlement(seqs[5] + 1_000_000_000, token, follow_ups=about(letters, "nobody, in vain")),
        Settlement(seqs[5], token, Outcome.EXPIRED, follow_ups=about(letters, "f", "more of f")),
    ]
    answers = await queue.store.settle(queue.id, ends, NOON, ordered=queue.ordered)
    assert answers == [DONE, refused("superseded"), DONE, DONE, DONE, refused("gone"), DONE]
    assert bodies(await queue.peek()) == ["b", "d"]
    assert sorted(bodies(await letters.peek())) == ["a", "c", "c", "f", "more of f"]


async def test_the_same_claim_ends_once(queue: Bench, letters: Bench) -> None:
    claims = await claim_sent(queue, *"ab")
    ends = [
        Settlement(
            claim.seq, claim.token or 0, outcome, follow_ups=about(letters, f"{claim.body} {outcome.value}")
        )
        for claim in claims
        for outcome in (Outcome.DROPPED, Outcome.EXPIRED)
    ]
    answers = await queue.store.settle(queue.id, ends, NOON, ordered=queue.ordered)
    assert answers == [DONE, refused("gone"), DONE, refused("gone")]
    assert bodies(await letters.peek()) == ["a dropped", "b dropped"]


async def test_a_delivery_settled_as_retry_is_not_settled_again_by_the_same_claim(
    queue: Bench, letters: Bench
) -> None:
    (a,) = await claim_sent(queue, "a")
    retry = Settlement(a.seq, a.token or 0, Outcome.RETRY, NOON + 5)
    drop = Settlement(a.seq, a.token or 0, Outcome.DROPPED, follow_ups=about(letters, "a"))
    answers = await queue.store.settle(queue.id, [retry, drop], NOON, ordered=queue.ordered)
    assert answers == [DONE, refused("superseded")]
    assert (bodies(await queue.peek()), await letters.peek()) == (["a"], [])


async def test_concurrent_settlements_write_each_follow_up_once(queue: Bench, letters: Bench) -> None:
    claims = await claim_sent(queue, *(str(number) for number in range(20)))
    calls = [queue.settle(claim, follow_ups=about(letters, claim.body)) for claim in claims * 2]
    answers = await asyncio.gather(*calls)
    assert sorted(answers) == [*[refused("gone")] * 20, *[DONE] * 20]
    assert sorted(map(int, bodies(await letters.peek()))) == list(range(20))


async def test_nodes_that_settle_the_same_claims_write_each_follow_up_once(shared_home: Home) -> None:
    stores = [await shared_home.open(str(number)) for number in range(3)]
    queue_id, letters_id = await stores[0].new_id(), await stores[0].new_id()
    nodes = [(Bench(store, queue_id), Bench(store, letters_id, ordered=True)) for store in stores]
    await nodes[0][0].send(*(str(number) for number in range(60)))
    claims = await nodes[0][0].claim(limit=60)

    def end_all(node: tuple[Bench, Bench]) -> list[Awaitable[Settled]]:
        queue, letters = node
        return [queue.settle(one, follow_ups=about(letters, one.body, group="g")) for one in claims]

    answers = await asyncio.gather(*(call for node in nodes for call in end_all(node)))
    assert answers.count(DONE) == 60
    assert sorted(map(int, bodies(await nodes[0][1].peek()))) == list(range(60))


async def test_a_settlement_fails_whole_where_its_follow_up_cannot_be_written(
    queue: Bench, letters: Bench
) -> None:
    a, b = await claim_sent(queue, "a", "b")
    impossible = letters.new_delivery("about a")
    impossible.message_id = None  # type: ignore[assignment]  # what no store takes
    with pytest.raises(StoreUnavailable):
        await queue.settle(a, follow_ups=[*about(letters, "a"), impossible])
    assert (await queue.peek(), await letters.peek()) == ([a, b], [])
    assert await queue.settle(a) == DONE


async def test_before_the_commit_a_crash_undoes_both_and_after_it_neither(tmp_path: Path) -> None:
    home = in_file(tmp_path / "redrive.db")
    store = await home.open()
    assert isinstance(store, SqliteStore)
    queue, letters = Bench(store, await store.new_id()), Bench(store, await store.new_id())
    (a,) = await claim_sent(queue, "a")
    reached, may_commit = threading.Event(), threading.Event()

    def before_commit() -> bool:
        reached.set()
        return not may_commit.wait(PATIENCE_SECONDS)  # true undoes it

    store.connection.set_commit_hook(before_commit)
    call = queue.store.settle(queue.id, [_drop(a, letters)], NOON, ordered=False)
    await asyncio.to_thread(reached.wait, PATIENCE_SECONDS)
    assert await after_crash(tmp_path, queue, letters) == (["a"], [])
    may_commit.set()
    assert await call == [DONE]
    assert await after_crash(tmp_path, queue, letters) == ([], ["about a"])
    await home.leave()


def _drop(claim: Delivery, letters: Bench) -> Settlement:
    return Settlement(claim.seq, claim.token or 0, Outcome.DROPPED, follow_ups=about(letters, "about a"))


async def after_crash(folder: Path, *queues: Bench) -> tuple[list[str], ...]:
    """Read these queues with a store that opens the files as they are now."""
    for suffix in ("", "-wal"):
        shutil.copy(folder / f"redrive.db{suffix}", folder / f"crashed.db{suffix}")
    home = in_file(folder / "crashed.db")
    store = await home.open()
    found = tuple([bodies(await Bench(store, queue.id).peek()) for queue in queues])
    await home.leave()
    return found


async def test_other_nodes_hear_of_what_arrived(shared_home: Home) -> None:
    one, other = shared_home.make("one"), shared_home.make("two")
    ears = Ears(other)
    for store in (one, other):
        await store.open()
        shared_home.opened.append(store)
    queue, letters = Bench(one, await one.new_id()), Bench(one, await one.new_id())
    await queue.send("a")
    assert await ears.arrived() == queue.id
    await queue.settle(await queue.claim_one(), follow_ups=about(letters, "a"))
    assert await ears.arrived() == letters.id
