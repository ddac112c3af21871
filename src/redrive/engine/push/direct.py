"""Direct pushes: pushes of one backlog that take no task, since they wait for nothing but the answer.

What can be rendered at once and be sent over a connection that stands is sent while the consumer goes through what it
claimed, and the answer joins those that are settled together. Whatever is more than a success (a failure, results that
differ, a circuit breaker to close, no answer for seconds where there is a soft time-out) goes on as an attempt of the
usual kind.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from redrive.engine.ports import DirectEndpoint, PushRequest, SubscriptionContext
from redrive.engine.ports.facts import Attempted
from redrive.engine.push.attempt import DeliveryAttempt
from redrive.engine.push.settlement import JointSettlements, PushParts, SettleItem
from redrive.model.attempt import Attempt
from redrive.model.delivery import DELIVERED, Delivery, is_sealed

# The interval of looks at pushes under a soft time-out, which is half a minute. One without an answer at two of them gets
# a task: after one to two seconds.
LOOK_SECONDS: Final = 1


class _Push:
    """One of them."""

    __slots__ = ("answering", "began", "context", "deliveries", "give_up", "is_slow", "settle", "take")

    def __init__(
        self,
        context: SubscriptionContext,
        deliveries: Sequence[Delivery],
        began: int,
        take: Callable[["_Push", Attempt], None],
        settle: Callable[["_Push", Exception | None], None],
    ) -> None:
        self.context = context
        self.deliveries = deliveries
        self.began = began  # by the engine's clock (ms)
        self.take = take
        self.settle = settle
        self.give_up: Callable[[], None] | None = None  # None: answered
        self.is_slow = False  # had no answer when the last look was taken
        self.answering: asyncio.Future[Attempt] | None = None  # what an attempt of the usual kind waits for

    def answered(self, attempt: Attempt) -> None:
        """Take the endpoint's answer."""
        self.give_up = None
        if self.answering is None:
            self.take(self, attempt)
        elif not self.answering.done():
            self.answering.set_result(attempt)

    def settled(self, error: Exception | None) -> None:
        """The delivery was settled, or that failed."""
        self.settle(self, error)


class DirectPushes:
    """The direct pushes of one backlog, from their beginning until they are settled."""

    def __init__(
        self,
        parts: PushParts,
        settlements: JointSettlements,
        start: Callable[[Coroutine[Any, Any, None]], None],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        """Begin with none; `start` runs a usual attempt, `ended` is called after each settlement."""
        self._parts = parts
        self._settlements = settlements
        self._start = start
        self._ended = ended
        self._pushes: dict[_Push, None] = {}  # in the order of their beginning
        self._idle: asyncio.Future[None] | None = (
            None  # done when there are none; None: nobody waits for that
        )
        self._soft_timeout_timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._pushes)

    def work(self) -> list["asyncio.Future[None]"]:
        """A future that is done when there are no pushes; empty if there are none now."""
        if not self._pushes:
            return []
        if self._idle is None:
            self._idle = asyncio.get_running_loop().create_future()
        return [self._idle]

    def stop(self) -> None:
        """Give all of them up; leases run out."""
        for push in list(self._pushes):
            if push.give_up is not None:
                push.give_up()
            self._forget(push)

    # ---- begun -------------------------------------------------------------------------------------------

    async def prepare(
        self, context: SubscriptionContext, pushes: Sequence[Sequence[Delivery]]
    ) -> Sequence[PushRequest | None]:
        """The requests of pushes that are rendered together; None for each that has to be rendered by itself."""
        sealed = any(is_sealed(delivery) for deliveries in pushes for delivery in deliveries)
        if context.render_together is not None and not sealed:
            with contextlib.suppress(Exception):  # as in `begin`
                return await context.render_together(context, pushes)
        return [None] * len(pushes)

    def begin(
        self, context: SubscriptionContext, deliveries: Sequence[Delivery], prepared: PushRequest | None
    ) -> bool:
        """Begin to push, if no step of it has to wait; True if it was begun."""
        if context.render_at_once is None or not self._is_plain(context, deliveries):
            return False
        endpoint: object = self._parts.endpoints.get(context.subscription.protocol)
        if not isinstance(endpoint, DirectEndpoint):
            return False
        push = _Push(context, deliveries, self._parts.runtime.clock.now(), self._take, self._settle)
        try:
            push_request = prepared or context.render_at_once(context, deliveries)
            give_up = None if push_request is None else endpoint.begin(push_request, push.answered)
        except Exception:  # noqa: BLE001 - an attempt of the usual kind meets it again, and tells of it
            return False
        if give_up is None:
            return False
        push.give_up = give_up
        self._pushes[push] = None
        if context.plan.soft_timeout_ms is not None and self._soft_timeout_timer is None:
            self._look_later()
        return True

    def _is_plain(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> bool:
        """True if only the endpoint's answer decides what becomes of these: no fault, late push, circuit or key does."""
        parts = self._parts
        if parts.faults.are_used or parts.late_pushes.earlier(deliveries):
            return False
        if not parts.circuits.knows_nothing_of(context.subscription):
            return False
        for delivery in deliveries:  # noqa: SIM110 - `any` of a generator takes four times as long
            if is_sealed(delivery):
                return False
        return True

    # ---- ended -------------------------------------------------------------------------------------------

    def _take(self, push: _Push, attempt: Attempt) -> None:
        """Settle a plain success with others; everything else goes on as an attempt of the usual kind."""
        context = push.context
        judged = context.plan.answers.judge(attempt)
        circuit_closed = self._parts.circuits.knows_nothing_of(context.subscription)
        if not circuit_closed or judged.parts or not judged.delivered:
            self._forget(push)
            self._start(self._usual(push).end(attempt))
            return
        now = self._parts.runtime.clock.now()
        items = [
            SettleItem(
                Attempted(
                    context.topic,
                    context.subscription,
                    delivery,
                    judged,
                    DELIVERED,
                    now,
                    position,
                    context.identify,
                )
            )
            for position, delivery in enumerate(push.deliveries)
        ]
        until = min([delivery.available_at for delivery in push.deliveries])
        self._settlements.add(context, push.deliveries, items, until, push.settled)

    def _settle(self, push: _Push, error: Exception | None) -> None:
        self._forget(push)
        self._ended(error)

    def _forget(self, push: _Push) -> None:
        self._pushes.pop(push, None)
        if not self._pushes and self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    def _usual(self, push: _Push) -> DeliveryAttempt:
        return DeliveryAttempt(self._parts, self._settlements, push.context, push.deliveries)

    # ---- soft time-outs ----------------------------------------------------------------------------------

    def _look_later(self) -> None:
        self._soft_timeout_timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Let pushes without an answer since the last look go on as usual attempts, which have a soft time-out."""
        self._soft_timeout_timer = None
        for push in list(self._pushes):
            if push.give_up is None or push.context.plan.soft_timeout_ms is None:
                continue
            if push.is_slow:
                self._hand_over(push, push.give_up)
                continue
            push.is_slow = True
            if self._soft_timeout_timer is None:
                self._look_later()

    def _hand_over(self, push: _Push, give_up: Callable[[], None]) -> None:
        """Let an attempt of the usual kind wait for the answer; the push is given up if the attempt stops waiting."""
        push.answering = asyncio.get_running_loop().create_future()

        def ended(answering: "asyncio.Future[Attempt]") -> None:
            if answering.cancelled():
                give_up()

        push.answering.add_done_callback(ended)
        self._forget(push)
        self._start(self._usual(push).take_over(push.answering, push.began))
