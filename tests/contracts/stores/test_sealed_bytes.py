"""The sealed bytes of a message go where it goes, in every store."""

from redrive.engine.ports import Settlement
from redrive.model.delivery import SEAL_MARK, Delivery, Outcome
from tests.contracts.stores.bench import DONE, NOON, Bench

SEALED = bytes(range(256))


async def claim_sealed(queue: Bench) -> Delivery:
    """Send a sealed message to a queue beside a plain one, and claim it."""
    await queue.send(SEAL_MARK, group="g", sealed=SEALED)
    await queue.send("plain", group="h")
    sealed, plain = await queue.claim()
    assert (sealed.sealed, plain.sealed) == (SEALED, None)
    return sealed


async def test_sealed_bytes_go_along_to_the_dead_letters_and_back(queue: Bench, dead_letters: Bench) -> None:
    sealed = await claim_sealed(queue)
    assert await queue.settle(sealed, outcome=Outcome.DEAD_LETTERED, target=dead_letters.target) == DONE
    (letter,) = await dead_letters.peek()
    assert (letter.body, letter.sealed) == (SEAL_MARK, SEALED)
    await dead_letters.move(destination=queue.target)
    assert [each.sealed for each in await queue.peek()] == [None, SEALED]


async def test_a_hand_over_with_other_content_takes_the_sealed_bytes_of_that(
    queue: Bench, dead_letters: Bench
) -> None:
    sealed = await claim_sealed(queue)
    opened = Settlement(
        sealed.seq,
        sealed.token or 0,
        Outcome.DELIVERED,
        target=dead_letters.target,
        content=("opened", b"{}", None),
    )
    await queue.store.settle(queue.id, [opened], NOON, ordered=queue.ordered)
    claimed = await dead_letters.claim_one()
    assert (claimed.body, claimed.headers, claimed.sealed) == ("opened", b"{}", None)
    sealed_again = opened._replace(
        seq=claimed.seq, token=claimed.token or 0, target=queue.target, content=(SEAL_MARK, None, b"other")
    )
    await dead_letters.store.settle(dead_letters.id, [sealed_again], NOON, ordered=False)
    assert [each.sealed for each in await queue.peek()] == [None, b"other"]
