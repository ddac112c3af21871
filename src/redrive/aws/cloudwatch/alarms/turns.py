"""Turns: of several nodes one evaluates, by a lease that it renews at each round and others take once it ran out.

Two nodes that evaluate at once, because a clock runs ahead, write no transition twice: see `Transitions.bring`.
"""

from dataclasses import dataclass
from typing import Final

from redrive.engine.ports import DocumentKind, Runtime
from redrive.engine.resources import Documents, Draft
from redrive.model.document import Document

#: A round is each minute; of a dead node's turn at most the next one is missed.
LEASE_MS: Final = 75_000
_KEY: Final = "turn"


@dataclass(frozen=True, slots=True)
class Turn(Document):
    """The node that evaluates."""

    node: str  # Its name
    until: int  # How long others leave it to that node (ms)


TURN: Final = DocumentKind.of("alarm_turn", Turn)


class EvaluationTurns:
    """This node's turns."""

    def __init__(self, documents: Documents, runtime: Runtime) -> None:
        self._documents = documents
        self._runtime = runtime

    async def take(self) -> bool:
        """Returns whether it is this node's turn, which it then is for `LEASE_MS`."""
        now, node = self._runtime.clock.now(), self._runtime.node

        async def decide(draft: Draft) -> bool:
            turn = await draft.get(TURN, _KEY)
            if turn is not None and turn.node != node and turn.until > now:
                return False
            draft.put(TURN, _KEY, Turn(node, now + LEASE_MS))
            return True

        return await self._documents.transact(decide)
