"""Claims are met by their own token, or refused with the reason."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import Settled
from redrive.stores.postgres.access_paths import each, key_of

# The claims that a statement is about: the places in $2, the tokens in $3, what each must outlast in $4 and, where it is
# to hold on, until when in $5.
OWN: Final = "unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS own (seq, token, holds)"
OWN_UNTIL: Final = (
    "unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS own (seq, token, holds, until)"
)
# Its condition, looked at again where the delivery was changed while the statement waited for it; and its first answers.
MET: Final = f"{key_of('d')} AND d.token = own.token AND d.available_at > own.holds"
WHICH: Final = "own.seq AS own_seq, own.token AS own_token"

_STATES: Final = (
    "SELECT one.seq, found.token, found.available_at FROM unnest($2::bigint[]) AS one (seq)"
    f" {each('token, available_at')}"
)

DONE: Final = Settled(done=True)
GONE: Final = Settled(done=False, reason="gone")
SUPERSEDED: Final = Settled(done=False, reason="superseded")
LAPSED: Final = Settled(done=False, reason="lapsed")

EVER: Final = -1  # every claim outlasts this


class HeldClaim(NamedTuple):
    """A claim that a caller refers to."""

    seq: int  # Sequence number of the delivery
    token: int  # The claim's
    holds: int  # It must hold longer than this (ms)
    until: int = 0  # New end of the claim (ms), if it is extended


class Fence:
    """Claims of one queue, of whoever came together, and what became of them."""

    def __init__(self, connection: Connection, queue_id: int) -> None:
        self._connection = connection
        self._queue_id = queue_id
        self._met: set[tuple[int, int]] = set()  # claims that hold: number and token
        self._answered: set[tuple[int, int]] = set()  # claims that were settled before in this call
        self._refusals: dict[tuple[int, int], Settled] = {}

    async def meet(self, statement: str, claims: Iterable[HeldClaim], *, until: bool = False) -> list[Any]:
        """Run a statement on the deliveries whose claims are good, and return its rows; `until`: it takes their new ends.

        A claim that had run out when the statement began, and was extended by a call on its way, is met in another round.
        """
        # In order, so that two who do this do not wait for each other in a circle.
        remaining = {(claim.seq, claim.token): claim for claim in sorted(claims)}
        answers: list[Any] = []
        while remaining:
            seqs, tokens, holds, untils = zip(*remaining.values(), strict=True)
            columns = (seqs, tokens, holds, untils) if until else (seqs, tokens, holds)
            records = await self._connection.fetch(statement, self._queue_id, *columns)
            answers += records
            met = {(record["own_seq"], record["own_token"]) for record in records}
            self._met |= met
            remaining = await self._still_good(
                {key: held for key, held in remaining.items() if key not in met}
            )
        return answers

    async def _still_good(
        self, refused: dict[tuple[int, int], HeldClaim]
    ) -> dict[tuple[int, int], HeldClaim]:
        """The refused claims that are good by now; the reasons why the others are not are remembered."""
        if not refused:
            return {}
        records = await self._connection.fetch(
            _STATES, self._queue_id, [value.seq for value in refused.values()]
        )
        states = {seq: (token, available_at) for seq, token, available_at in records}
        good = {}
        for key, held in refused.items():
            token, available_at = states.get(held.seq, (None, None))
            if available_at is None:
                self._refusals[key] = GONE
            elif token != held.token:
                self._refusals[key] = SUPERSEDED
            elif available_at <= held.holds:
                self._refusals[key] = LAPSED
            else:
                good[key] = held
        return good

    def was_met(self, seq: int, token: int) -> bool:
        """True if this claim was good."""
        return (seq, token) in self._met

    def answer(self, seq: int, token: int, again: Settled) -> Settled:
        """The answer for a claim; `again` for a valid claim that was settled a second time."""
        key = (seq, token)
        if key not in self._met:
            return self._refusals[key]
        if key in self._answered:
            return again
        self._answered.add(key)
        return DONE
