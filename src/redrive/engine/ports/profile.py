"""The facade's part in delivering: what one subscription's deliveries go by, and what they look like on the wire."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from redrive.engine.facts import Attempted
from redrive.engine.ports.pushing import Plan, PushRequest
from redrive.engine.ports.requests import AttemptNote
from redrive.model.attempt import Attempt
from redrive.model.delivery import Delivery, own_id
from redrive.model.message import Publication
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A message that the end of a delivery leads to, in the transaction that ends it.

    Attributes:
        topic: Where it is published.
        publication: The message.
        subscription_id: The only subscription that gets it, confirmed or not; None: all that match.
        delay_ms: How long it waits before it is pushed.
    """

    topic: ResourceName
    publication: Publication
    subscription_id: str | None = None
    delay_ms: int = 0


class DeathRecord(NamedTuple):
    """A delivery that ended without success and goes on as a message: the dead letter that such a message is.

    Attributes:
        origin: The number of the queue that the delivery was in, to which a redrive brings it back.
        message_id: The delivery's, under which its attempts are noted.
        note: The last of them.
    """

    origin: int
    message_id: bytes
    note: AttemptNote


def whole_envelope(envelope: bytes) -> bytes:
    """Returns the envelope: the headers of deliveries that take all of it."""
    return envelope


def _never(_: Delivery) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class SubscriptionContext:
    """A subscription, and all about its deliveries that only a new version of it or of its topic changes.

    A profile makes it, and the engine remembers it (`redrive.engine.push.contexts`): asking for each claim, attempt and
    end took sixteen calls for two attempts.

    Attributes:
        topic: Where its messages are published.
        subscription: The subscription.
        profile: Answers what depends on the message.
        plan: How its deliveries are pushed.
        headers: Makes the headers of its delivery from a publication's envelope; called at each publication.
        queue: The queue of this server that its endpoint is; None: it is pushed to.
        dead_letter: Where deliveries go that cannot be made; None: they are dropped.
        is_confirmation: Picks the deliveries that ask the endpoint whether it wants the others; they are nobody's dead
            letters.
        retries_refusals: A message that `queue` refuses is tried again by the plan; else it is a dead letter as soon as
            it is published.
        awaits_confirmation: Its endpoint has not agreed yet to get messages.
        identify: Finds the message's id, as its publisher knows it, in a delivery.
    """

    topic: Topic
    subscription: Subscription
    profile: "DeliveryProfile"
    plan: Plan
    headers: Callable[[bytes], bytes]
    queue: ResourceName | None = None
    dead_letter: ResourceName | None = None
    is_confirmation: Callable[[Delivery], bool] = _never
    retries_refusals: bool = False
    awaits_confirmation: bool = False
    identify: Callable[[Delivery], str] = own_id


class DeliveryProfile(Protocol):
    """A facade's part in delivering what was published through it."""

    @property
    def name(self) -> str:
        """The name under which listeners are registered for its attempts; see `redrive.engine.listeners`."""
        ...

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """Everything about a subscription's deliveries that does not depend on the message."""
        ...

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """The reason why a queue does not take a message from the topic; None: it takes it.

        Asked for the endpoint and for the dead-letter queue alike. A None is remembered until a topic, subscription or
        queue changes, for bodies of no more bytes.

        Args:
            context: Whose message.
            queue: The queue; None: it does not exist.
            body: The message's.
            headers: Of a delivery that stands already and is handed to its endpoint. For a message that is being
                published, the publication itself says what of its headers a queue would refuse (`raw_refusal`).
        """
        ...

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """The request of one attempt: of a single delivery, unless the plan has batches."""
        ...

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        """The messages that a delivery's end leads to; a retry leads to none.

        Where the delivery's time was over before it was tried again, the attempt's reason is EXPIRED.
        """
        ...
