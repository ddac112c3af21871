"""A claim's decisions, as tables and as laws."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.claiming import (
    ClaimPlan,
    ClaimShare,
    Followers,
    Placed,
    death_reason,
    offer,
    plan_endings,
    plan_fair,
    plan_ordered,
    stamp,
)
from redrive.model.delivery import (
    DeadLetterReason,
    Delivery,
    Limits,
    LinePosition,
    Outcome,
    as_dead_letter,
    as_handed_over,
    as_sent_dead_letter,
    enter,
)

NOON = 1_000_000
LEASE_MS = 30_000


@dataclass
class ClaimTerms:
    """A claim of a test."""

    limit: int = 10
    now: int = NOON
    lease_ms: int = LEASE_MS
    token: int = 7
    limits: Limits = Limits()  # noqa: RUF009 - it is frozen
    resumes: bool = False
    looks_ahead: bool = False


def delivery(seq: int = 1, group: str | None = None, **others: object) -> Delivery:
    made = Delivery(
        1, seq, NOON, 0, None, NOON - 50, NOON - 60, None, b"m", group, "d", None, b"{}", f"{seq}"
    )
    return replace(made, **others)  # type: ignore[arg-type]  # whatever a test says


def turns(*groups: str, first: int = 1) -> list[Placed]:
    """Deliveries that hold their groups' turns."""
    return [(delivery(seq, name), LinePosition.HEAD) for seq, name in enumerate(groups, first)]


def behind(**numbers: int) -> Followers:
    """So many deliveries behind the turn of each group."""
    return {name: [delivery(100 + n, name) for n in range(number)] for name, number in numbers.items()}


def bodies(share: ClaimShare) -> list[str]:
    return [one.body for one in share.claimed.deliveries]


# ---- stamps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "resumes", "attempts"), [(None, False, 3), (None, True, 3), (5, False, 3), (5, True, 2)]
)
def test_a_claim_counts_unless_it_resumes_one(token: int | None, resumes: bool, attempts: int) -> None:
    claimed = delivery(token=token, attempts=2)
    stamp(claimed, ClaimTerms(resumes=resumes))
    assert (claimed.token, claimed.available_at, claimed.attempts) == (7, NOON + LEASE_MS, attempts)


@pytest.mark.parametrize(("before", "after"), [(None, NOON), (NOON - 9, NOON - 9)])
def test_the_first_claim_is_remembered(before: int | None, after: int) -> None:
    claimed = delivery(first_claimed_at=before)
    stamp(claimed, ClaimTerms())
    assert claimed.first_claimed_at == after


@pytest.mark.parametrize(
    ("age_ms", "end"), [(99, DeadLetterReason.EXHAUSTED), (100, DeadLetterReason.EXPIRED)]
)
def test_a_dead_letter_of_a_claim_says_how_it_ended(age_ms: int, end: DeadLetterReason) -> None:
    limits = Limits(retention_ms=100, attempts_max=1, dead_letters=True, buries_expired=True)
    dead = delivery(attempts=1, enqueued_at=NOON - age_ms)
    assert offer(dead, limits, NOON) is Outcome.DEAD_LETTERED
    assert death_reason(dead, limits, NOON) is end


# ---- plans -----------------------------------------------------------------------------------------------------


def test_an_ordered_queue_gives_as_much_as_possible_of_its_first_groups() -> None:
    shares = [ClaimShare(ClaimTerms(limit=2)), ClaimShare(ClaimTerms(limit=2, token=8))]
    plan = plan_ordered(shares, turns("a", "b", "c"), behind(a=3, b=1), NOON)
    assert [bodies(share) for share in shares] == [["1", "100"], ["2", "100"]]
    assert (plan.removed, plan.turns_lost, plan.turns_used) == ([], set(), set())


def test_of_an_ordered_group_goes_nothing_behind_a_delivery_that_is_not_due() -> None:
    share = ClaimShare(ClaimTerms())
    later = {"a": [delivery(5, "a", available_at=NOON + 1), delivery(6, "a")]}
    plan_ordered([share], turns("a"), later, NOON)
    assert bodies(share) == ["1"]


def test_a_fair_queue_gives_of_each_group_in_turn() -> None:
    share = ClaimShare(ClaimTerms(limit=5))
    plan = plan_fair([share], turns("a", "b"), behind(a=3, b=3), NOON)
    assert bodies(share) == ["1", "2", "100", "100", "101"]
    assert (plan.turns_used, plan.turns_lost) == ({"a", "b"}, set())


def test_a_turn_leaves_with_the_delivery_that_had_it() -> None:
    request = ClaimTerms(limits=Limits(retention_ms=10))
    for give_out in (plan_ordered, plan_fair):
        share = ClaimShare(request)
        plan = give_out([share], turns("a"), {}, NOON)
        assert (plan.turns_lost, plan.turns_used, share.claimed.expired) == ({"a"}, set(), 1)


def test_a_plan_of_endings_alone_removes_exhausted_deliveries() -> None:
    share = ClaimShare(ClaimTerms(limits=Limits(attempts_max=2, drops_exhausted=True)))
    line = [(delivery(1, attempts=2), LinePosition.READY), (delivery(2, "g", attempts=2), LinePosition.HEAD)]
    plan = plan_endings(share, [*line, (delivery(3), LinePosition.READY)], NOON)
    assert ([one.seq for one in plan.discarded], plan.turns_lost, plan.claimed) == ([1, 2], {"g"}, [])
    assert share.claimed.removed == share.claimed.dropped == 2


lines = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(0, 3), st.integers(0, 120)),
    max_size=6,
    unique_by=lambda one: one[0] or object(),
)
all_limits = st.builds(
    Limits, st.none() | st.just(100), st.integers(0, 2), st.booleans(), st.booleans(), st.booleans()
)


def placed(line: list[tuple[str | None, int, int]]) -> list[Placed]:
    return [
        (
            delivery(seq, group, attempts=attempts, enqueued_at=NOON - age_ms),
            LinePosition.READY if group is None else LinePosition.HEAD,
        )
        for seq, (group, attempts, age_ms) in enumerate(line, 1)
    ]


@given(
    lines, st.lists(st.integers(1, 3), min_size=1, max_size=3), all_limits, st.integers(0, 3), st.booleans()
)
def test_laws_of_a_plan(
    line: list[tuple[str | None, int, int]], rooms: list[int], limits: Limits, followers: int, ordered: bool
) -> None:
    shares = [ClaimShare(ClaimTerms(room, token=token, limits=limits)) for token, room in enumerate(rooms, 1)]
    waiting = behind(**{group: followers for group, *_ in line if group is not None})
    plan: ClaimPlan = (plan_ordered if ordered else plan_fair)(shares, placed(line), waiting, NOON)
    assert all(len(share.claimed.deliveries) <= share.request.limit for share in shares)
    assert [one for share in shares for one in share.claimed.deliveries] == plan.claimed
    assert all(one.token == share.request.token for share in shares for one in share.claimed.deliveries)
    assert sum(share.claimed.removed for share in shares) == len(plan.removed)
    assert all(offer(one, limits, NOON) is not Outcome.RETRY for one in plan.removed)
    places = [(one.seq, one.group_id) for one in plan.claimed + plan.removed]
    assert len(set(places)) == len(places)
    if ordered:
        holders = {(one.group_id, one.token) for one in plan.claimed if one.group_id}
        assert len({group for group, _ in holders}) == len(holders)


# ---- the next queue --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [False, True])
def test_a_delivery_enters_its_next_queue_as_its_outcome_says(ordered: bool) -> None:
    one = delivery(attempts=3)
    dead = enter(one, Outcome.DEAD_LETTERED, 2, 9, NOON, ordered=ordered)
    assert dead == as_dead_letter(one, 2, 9, NOON, ordered=ordered)
    sent = enter(one, Outcome.DEAD_LETTERED, 2, 9, NOON, ordered=ordered, as_new=True)
    assert sent == as_sent_dead_letter(one, 2, 9, NOON)
    handed = enter(one, Outcome.DELIVERED, 2, 9, NOON, ordered=ordered)
    assert handed == as_handed_over(one, 2, 9, NOON)
