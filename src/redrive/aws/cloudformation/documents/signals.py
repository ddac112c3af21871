"""Signals that resources wait for: responses of custom resources, signals, and the ends of nested stacks.

A response is sent to a URL that cannot be guessed: its last part is a digest of the installation's secret and of what the
response is subject, so it is the same after a crash, and nothing is stored before the response arrives.
"""

import asyncio
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

from redrive.aws.cloudformation.documents.history import SIGNAL, Signal, escape
from redrive.aws.cloudformation.documents.records import PATH, STACK, Stack, id_in
from redrive.engine.ports import Clock
from redrive.engine.resources import Draft, Resources

T = TypeVar("T")


class Activity:
    """Counts work in progress that waits neither for a signal nor for a time."""

    def __init__(self) -> None:
        self._count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, number: int) -> None:
        """Change the count."""
        self._count += number
        if self._count:
            self._idle.clear()
        else:
            self._idle.set()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Count the body of the `with` statement as work."""
        self.add(1)
        try:
            yield
        finally:
            self.add(-1)

    @property
    def is_quiet(self) -> bool:
        """True if no work is in progress."""
        return not self._count

    async def until_quiet(self) -> None:
        """Return when no work is in progress."""
        await self._idle.wait()


@dataclass(eq=False, slots=True)
class _Waiter:
    kind: str
    prefix: str
    activity: Activity
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    is_asleep: bool = False

    def wake(self) -> None:
        """Let `sleep` return; the waiter counts as work at once, before its task has its turn."""
        if self.is_asleep:
            self.is_asleep = False
            self.activity.add(1)
        self.woken.set()

    async def sleep(self) -> None:
        """Return once woken. A waiter does not count as work while it sleeps; `wake` counts it again."""
        if not self.woken.is_set():
            self.is_asleep = True
            self.activity.add(-1)
            try:
                await self.woken.wait()
            finally:
                if self.is_asleep:  # cancelled
                    self.is_asleep = False
                    self.activity.add(1)
        self.woken.clear()


class DocumentWatch:
    """Wakes tasks that wait for documents."""

    def __init__(self, resources: Resources, clock: Clock, activity: Activity) -> None:
        self._clock = clock
        self._activity = activity
        self._waiters: set[_Waiter] = set()
        documents = resources.documents
        documents.on_write(lambda kind, key, _: self._wake(kind, key))
        documents.on_change_elsewhere(self._wake)

    def _wake(self, kind: str, key: str) -> None:
        for waiter in self._waiters:
            if not kind or (waiter.kind == kind and (not key or key.startswith(waiter.prefix))):
                waiter.wake()

    async def until(
        self, kind: str, prefix: str, look: Callable[[], Awaitable[T | None]], deadline: int
    ) -> T | None:
        """Call `look` whenever documents of a kind change, until it returns something else than None.

        - `prefix`: the beginning of the documents' keys.
        - `deadline`: ms; None is returned after it.
        """
        waiter = _Waiter(kind, prefix, self._activity)
        self._waiters.add(waiter)
        timer = self._clock.call_at(deadline, waiter.wake)
        try:
            while (result := await look()) is None:
                if self._clock.now() >= deadline:
                    return None
                await waiter.sleep()
            return result
        finally:
            timer.cancel()
            self._waiters.discard(waiter)

    async def sleep(self, milliseconds: int) -> None:
        """Return after this time."""

        async def look() -> None:
            return None

        # No document has this kind and prefix: the deadline alone ends it.
        await self.until("", "nothing", look, self._clock.now() + milliseconds)


SIGNALS: Final = "signals"  # the subject of signals by SignalResource
_DURATION: Final = re.compile(r"PT(?:([0-9]{1,4})H)?(?:([0-9]{1,5})M)?(?:([0-9]{1,6})S)?")
_TOKEN_CHARS: Final = 32
_URL_PARTS: Final = 4


class StackSignals:
    """Stores signals, and waits for them."""

    def __init__(
        self, resources: Resources, clock: Clock, watch: DocumentWatch, base_url: str, key: bytes
    ) -> None:
        self._resources = resources
        self._clock = clock
        self._watch = watch
        self._base_url = base_url
        self._key = key

    @property
    def now(self) -> int:
        """The moment (ms)."""
        return self._clock.now()

    async def pause(self, milliseconds: int) -> None:
        """Return after this time."""
        await self._watch.sleep(milliseconds)

    # ---- addresses ---------------------------------------------------------------------------------------------------

    def url(self, stack_arn: str, logical_id: str, subject: str) -> str:
        """The URL that signals about a subject are sent to."""
        stack = _key_of(stack_arn)
        token = self._token(stack, logical_id, subject)
        return f"{self._base_url}{PATH}{quote(stack, safe='')}/{logical_id}/{subject}/{token}"

    def target_of(self, address: str) -> tuple[str, str, str] | None:
        """The stack's key, the logical id and the subject in a URL; None: the URL is not one of `url`."""
        parts = address.partition(PATH)[2].split("/")
        if len(parts) != _URL_PARTS:
            return None
        stack, logical_id, subject, token = unquote(parts[0]), *parts[1:]
        is_genuine = hmac.compare_digest(token.encode(), self._token(stack, logical_id, subject).encode())
        return (stack, logical_id, subject) if is_genuine else None

    def _token(self, *parts: str) -> str:
        digest = hmac.new(self._key, "\n".join(parts).encode(), hashlib.sha256)
        return digest.hexdigest()[:_TOKEN_CHARS]

    # ---- signals -------------------------------------------------------------------------------------------------------

    async def add(self, stack: str, logical_id: str, subject: str, signal: Signal) -> None:
        """Store a signal, in place of an earlier one with its id."""
        key = f"{_prefix(stack, logical_id, subject)}{escape(signal.id)}"

        async def decide(draft: Draft) -> None:
            await draft.overwrite(SIGNAL, key, signal)

        await self._resources.write(decide)

    async def wait(
        self, stack_arn: str, logical_id: str, subject: str, count: int, deadline: int
    ) -> Sequence[Signal]:
        """Wait for a number of signals, or for one of failure; empty: neither came before the deadline (ms)."""
        prefix = _prefix(_key_of(stack_arn), logical_id, subject)

        async def look() -> Sequence[Signal] | None:
            signals = await self._resources.documents.find(SIGNAL, prefix)
            failures = [signal for signal in signals if signal.status != "SUCCESS"]
            return failures or (signals if len(signals) >= count else None)

        signals = await self._watch.until(SIGNAL.name, prefix, look, deadline)
        return signals or ()

    async def forget(self, stack_arn: str, logical_id: str, subject: str) -> None:
        """Remove the signals about a subject."""
        prefix = _prefix(_key_of(stack_arn), logical_id, subject)

        async def decide(draft: Draft) -> None:
            for key, _ in await draft.find(SIGNAL, prefix):
                draft.remove(SIGNAL, key)

        await self._resources.write(decide)

    # ---- nested stacks -----------------------------------------------------------------------------------------------

    async def wait_for_end(self, stack_arn: str, deadline: int) -> Stack | None:
        """Wait until no change to a stack is in progress; None: there is no such stack, or the deadline (ms) passed."""
        key = _key_of(stack_arn)

        async def look() -> Stack | None:
            stack: Stack | None = await self._resources.documents.get(STACK, key)
            return None if stack is None or stack.status.endswith("_IN_PROGRESS") else stack

        if await self._resources.documents.get(STACK, key) is None:
            return None
        return await self._watch.until(STACK.name, key, look, deadline)

    async def nest(self, stack_arn: str, parent: str) -> None:
        """Store that a stack is nested in another."""
        parent_stack = await self._resources.documents.get(STACK, _key_of(parent))
        root = (parent_stack.root if parent_stack else "") or parent

        async def decide(draft: Draft) -> None:
            stack = await draft.get(STACK, _key_of(stack_arn))
            if stack is not None and stack.parent != parent:
                draft.put(STACK, stack.key, replace(stack, parent=parent, root=root))

        await self._resources.write(decide)

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


def _prefix(stack: str, logical_id: str, subject: str) -> str:
    return f"{stack}/{logical_id}/{subject}/"
