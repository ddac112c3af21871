"""Losses: deliveries that ended undelivered and that no dead-letter queue has, minute by minute, with their causes.

All nodes add to the same series, one for each subscription or queue and cause, so that a page names what is lost in an
account and region whichever node lost it. Where nothing is lost there is no series.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from redrive.model.metric import Series, Statistics
from redrive.model.names import ResourceName

NAMESPACE: Final = ":lost"
_COUNTED: Final = "deliveries_lost"


class Loss(NamedTuple):
    """A cause for which something loses what it cannot deliver.

    Attributes:
        of: The topic or the queue; without a name: publications straight to phones and devices.
        subscription: The id of the subscription of the topic; empty: the queue itself loses.
        reason: The cause with its status: `client_error 404`.
    """

    of: ResourceName
    subscription: str
    reason: str

    @property
    def series(self) -> Series:
        """The series that counts it; no account's, as none of Amazon's metrics counts the same."""
        kind = "topic" if self.subscription else "queue"
        dimensions = {
            "account": self.of.account,
            "region": self.of.region,
            kind: self.of.name,
            "reason": self.reason,
            **({"subscription": self.subscription} if self.subscription else {}),
        }
        return Series("", "", NAMESPACE, _COUNTED, tuple(sorted(dimensions.items())))

    @classmethod
    def of_series(cls, series: Series) -> "Loss":
        """The loss that a series counts."""
        dimensions = dict(series.dimensions)
        name = dimensions["topic"] if "topic" in dimensions else dimensions["queue"]
        of = ResourceName(dimensions["account"], dimensions["region"], name)
        return cls(of, dimensions.get("subscription", ""), dimensions["reason"])


class Losses:
    """Counts losses until they are taken."""

    def __init__(self) -> None:
        self._lost: dict[Loss, int] = {}

    def __bool__(self) -> bool:
        return bool(self._lost)

    def add(self, loss: Loss, messages: int) -> None:
        """Count messages that are lost."""
        if loss.of.private:  # one topic for each destination, of which there may be a million
            region = loss.of.region.partition(":")[0]
            loss = loss._replace(of=ResourceName(loss.of.account, region, ""), subscription="direct")
        self._lost[loss] = self._lost.get(loss, 0) + messages

    def take(self) -> Iterator[tuple[Series, Statistics]]:
        """The losses since the last time, each cause as points of its series."""
        lost, self._lost = self._lost, {}
        for loss, messages in lost.items():
            yield loss.series, Statistics.of(messages)
