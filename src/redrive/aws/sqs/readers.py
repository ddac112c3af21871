"""Readers of encrypted messages need permission for their keys."""

import logging
from collections.abc import Sequence

from redrive.access.principals import Principal
from redrive.aws.encryption.encryption import Encryption, reuse_ms
from redrive.aws.encryption.sealer import KEY
from redrive.aws.kit.call import Call
from redrive.aws.sqs.errors import key_refusals, key_refused
from redrive.engine.engine import Engine
from redrive.engine.ports import is_sealed
from redrive.model.delivery import Delivery
from redrive.model.errors import KeyUnusable
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)


class Readers:
    """Checks the rights of those who receive."""

    def __init__(self, engine: Engine, encryption: Encryption) -> None:
        self._engine = engine
        self._encryption = encryption

    async def check_first(self, call: Call, queue: Queue) -> None:
        """Refuse a receiver before anything is claimed, by the message that arrived first: nothing is counted or hidden.

        Raises:
            AwsError: One of `Kms…`.
        """
        if not self._encryption.has_read(call.principal, queue):
            with key_refusals(call):
                await self._check_first(call.principal, queue)

    async def may_read(self, queue: Queue, principal: Principal) -> bool:
        """Returns whether a principal may read a queue, by the message that arrived first."""
        if KEY not in queue.attributes or self._encryption.has_read(principal, queue):
            return True
        try:
            await self._check_first(principal, queue)
        except KeyUnusable as refused:
            logger.warning("queue.unreadable queue=%s caller=%s: %s", queue.name.key, principal.name, refused)
            return False
        return True

    async def _check_first(self, principal: Principal, queue: Queue) -> None:
        first = await self._engine.messages.peek(queue, 1)
        await self._encryption.check_reader(principal, queue.name.region, first, reuse_ms(queue))
        if first:
            self._encryption.note_reader(principal, queue)

    async def readable(self, call: Call, queue: Queue, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """The claimed messages that the receiver may read; the others are given back.

        Raises:
            AwsError: One of `Kms…`: it may read none.
        """
        readable: list[Delivery] = []
        refused: list[Delivery] = []
        why = KeyUnusable("The key of a message cannot be used.")
        for delivery in deliveries:
            try:
                await self._encryption.check_reader(call.principal, call.region, [delivery], reuse_ms(queue))
            except KeyUnusable as refusal:
                why = refusal
                refused.append(delivery)
                continue
            (refused if is_sealed(delivery) else readable).append(delivery)
        if refused:
            claims = [(delivery.seq, delivery.token or 0, 0) for delivery in refused]
            await self._engine.messages.extend(queue, claims)
        if not readable:
            raise key_refused(why, call.id)
        return readable
