"""Words that resources wait for: answers of custom resources, signals, and the ends of nested stacks.

An answer comes by an address that nobody can guess: its last part is made of the installation's secret and of what the
answer is about, so it is the same after a crash, and nothing is stored for it before it comes.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, unquote

from redrive.aws.cloudformation.documents.history import SIGNAL, Signal, escaped
from redrive.aws.cloudformation.documents.names import PATH, id_in
from redrive.aws.cloudformation.documents.records import STACK, Stack
from redrive.aws.cloudformation.documents.waiting import DocumentWatch
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

SIGNALS: Final = "signals"  # the matter of SignalResource
_DURATION: Final = re.compile(r"PT(?:([0-9]{1,4})H)?(?:([0-9]{1,5})M)?(?:([0-9]{1,6})S)?")
_TOKEN_CHARS: Final = 32
_PARTS: Final = 4


class StackSignals:
    """Waits for words, and keeps those that come."""

    def __init__(self, engine: Engine, watch: DocumentWatch, base_url: str, key: bytes) -> None:
        """Wait by the documents of this engine.

        Args:
            engine: Where words are kept.
            watch: Wakes what waits for them.
            base_url: What addresses for answers begin with.
            key: Of the installation, for their last part.
        """
        self._engine = engine
        self._watch = watch
        self._base_url = base_url
        self._key = key

    @property
    def now(self) -> int:
        """The moment (ms)."""
        return self._engine.clock.now()

    async def pause(self, milliseconds: int) -> None:
        """Return so much later."""
        await self._watch.sleep(milliseconds)

    # ---- addresses ---------------------------------------------------------------------------------------------------

    def address(self, stack_arn: str, logical_id: str, about: str) -> str:
        """The address that a word about something goes to."""
        stack = _key_of(stack_arn)
        token = self._token(stack, logical_id, about)
        return f"{self._base_url}{PATH}{quote(stack, safe='')}/{logical_id}/{about}/{token}"

    def place_of(self, address: str) -> tuple[str, str, str] | None:
        """The stack's key, the logical id and the matter of an address's path; None: it is not one of ours."""
        parts = address.partition(PATH)[2].split("/")
        if len(parts) != _PARTS:
            return None
        stack, logical_id, about, token = unquote(parts[0]), *parts[1:]
        genuine = hmac.compare_digest(token.encode(), self._token(stack, logical_id, about).encode())
        return (stack, logical_id, about) if genuine else None

    def _token(self, *about: str) -> str:
        digest = hmac.new(self._key, "\n".join(about).encode(), hashlib.sha256)
        return digest.hexdigest()[:_TOKEN_CHARS]

    # ---- words -------------------------------------------------------------------------------------------------------

    async def tell(self, stack: str, logical_id: str, about: str, signal: Signal) -> None:
        """Keep a word; the same id again replaces it."""
        key = f"{_prefix(stack, logical_id, about)}{escaped(signal.id)}"

        async def decide(draft: Draft) -> None:
            await draft.get(SIGNAL, key)
            draft.put(SIGNAL, key, signal)

        await self._engine.resources.write(decide)

    async def told(
        self, stack_arn: str, logical_id: str, about: str, count: int, deadline: int
    ) -> Sequence[Signal]:
        """Wait until so many words have come, or one that says that something failed, or it is too late."""
        prefix = _prefix(_key_of(stack_arn), logical_id, about)

        async def look() -> Sequence[Signal] | None:
            signals = await self._engine.resources.documents.find(SIGNAL, prefix)
            failed = [signal for signal in signals if signal.status != "SUCCESS"]
            return failed or (signals if len(signals) >= count else None)

        signals = await self._watch.until(SIGNAL.name, prefix, look, deadline)
        return signals or ()

    async def forget(self, stack_arn: str, logical_id: str, about: str) -> None:
        """Forget the words about something."""
        prefix = _prefix(_key_of(stack_arn), logical_id, about)

        async def decide(draft: Draft) -> None:
            for key, _ in await draft.find(SIGNAL, prefix):
                draft.remove(SIGNAL, key)

        await self._engine.resources.write(decide)

    # ---- nested stacks -----------------------------------------------------------------------------------------------

    async def ended(self, stack_arn: str, deadline: int) -> Stack | None:
        """Wait until nothing is being done to a stack; None: there is none."""
        key = _key_of(stack_arn)

        async def look() -> Stack | None:
            stack: Stack | None = await self._engine.resources.documents.get(STACK, key)
            return None if stack is None or stack.status.endswith("_IN_PROGRESS") else stack

        if await self._engine.resources.documents.get(STACK, key) is None:
            return None
        return await self._watch.until(STACK.name, key, look, deadline)

    async def nest(self, stack_arn: str, parent: str) -> None:
        """Write down that a stack is nested in another."""
        above = await self._engine.resources.documents.get(STACK, _key_of(parent))
        root = (above.root if above else "") or parent

        async def decide(draft: Draft) -> None:
            stack = await draft.get(STACK, _key_of(stack_arn))
            if stack is not None and stack.parent != parent:
                draft.put(STACK, stack.key, replace(stack, parent=parent, root=root))

        await self._engine.resources.write(decide)

    def outputs(self, stack: Stack) -> Mapping[str, Any]:
        """The outputs of a nested stack, as attributes."""
        return {f"Outputs.{output.name}": output.value for output in stack.outputs}


def duration_ms(text: str) -> int:
    """A duration as templates have it, `PT1H30M`; five minutes for any other text."""
    match = _DURATION.fullmatch(text)
    hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 5, 0)
    return ((hours * 60 + minutes) * 60 + seconds) * 1000


def _key_of(stack_arn: str) -> str:
    _, _, _, region, account, _ = stack_arn.split(":", 5)
    return f"{account}/{region}/{id_in(stack_arn)}"


def _prefix(stack: str, logical_id: str, about: str) -> str:
    return f"{stack}/{logical_id}/{about}/"
