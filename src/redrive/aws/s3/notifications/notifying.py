"""Notifying: what a change of an object has to be told enters a backlog in the transaction of that change."""

from typing import Final

from redrive.aws.gateway.owed_calls import backlog_in
from redrive.aws.gateway.rounds import TRACE
from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.records import DIALECT, TO_DESTINATION, Bucket, ObjectRecord
from redrive.aws.s3.notifications.destinations import OwedNotification
from redrive.aws.s3.notifications.messages import event_message
from redrive.aws.s3.notifications.rules import rules_of
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

_NOTIFICATIONS: Final = "notifications"  # the subscription that is the backlog
_COUNT_BITS: Final = 16


class Notifier:
    """Owes notifications."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last = 0

    async def owe_in(
        self, draft: Draft, call: Call, event: str, bucket: Bucket, record: ObjectRecord
    ) -> None:
        """Owe what a bucket's rules say of an event; no two of them are for the same.

        Args:
            draft: What is written with the change.
            call: That causes it.
            event: `s3:ObjectCreated:Put` …
            bucket: As the draft has it.
            record: The object, as it comes to be or as it was.
        """
        rule = next((rule for rule in rules_of(bucket.notifications) if rule.is_for(event, record.key)), None)
        if rule is None:
            return
        backlog = await backlog_in(
            draft, self._engine, bucket.account, bucket.region, DIALECT, _NOTIFICATIONS, TO_DESTINATION
        )
        message = event_message(call, event, bucket, rule.id, record, self._sequencer(call.now))
        owed = OwedNotification(bucket.name, rule.arn, message, call.request.headers.get(TRACE, ""))
        self._engine.messages.publish_alone_in(draft, *backlog, owed.pack(), b"")

    def _sequencer(self, now: int) -> str:
        """A number greater than all before; among nodes, by their clocks.

        Whoever writes an object after another begins anew with what that left, so its number is drawn later.
        """
        self._last = max(self._last + 1, now << _COUNT_BITS)
        return f"{self._last:018X}"
