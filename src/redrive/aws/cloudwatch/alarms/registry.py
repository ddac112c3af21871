"""The alarms that there are, in memory: reading a thousand documents a minute would cost more than evaluating them."""

from collections.abc import Callable, Iterable
from typing import Final

from redrive.aws.cloudwatch.alarms.records import ALARMS, METRIC, Alarm
from redrive.aws.cloudwatch.alarms.watch import AlarmWatch
from redrive.aws.cloudwatch.metrics.errors import error
from redrive.engine.resources import Documents
from redrive.model.names import ResourceName

ALARMS_MAX: Final = 5_000  # of an account's region (CloudWatch quotas); to count them takes 0.3 ms
_FINE_SECONDS = 60


class AlarmRegistry:
    """Every alarm, as this node last read or wrote it, and what evaluations need of it."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._alarms: dict[str, Alarm] = {}
        self._watches: dict[str, AlarmWatch] = {}
        self._outdated = True
        self.on_change: Callable[[], None] = _nothing
        documents.on_write(self._written)
        documents.on_forget(self._forgotten)

    async def follow(self) -> None:
        """Read all alarms again if another node changed any."""
        if not self._outdated:
            return
        self._outdated = False
        try:
            alarms = await self._documents.entries(ALARMS)
        except BaseException:
            self._outdated = True
            raise
        self._alarms.clear()
        self._watches.clear()
        for key, alarm in alarms:
            self._keep(key, alarm)

    @property
    def alarms(self) -> Iterable[Alarm]:
        """Every alarm."""
        return self._alarms.values()

    @property
    def watches(self) -> Iterable[AlarmWatch]:
        """The watch of each metric alarm."""
        return self._watches.values()

    @property
    def grain_seconds(self) -> int | None:
        """The time between two evaluations; None: there are no alarms."""
        if not self._alarms:
            return None
        fine = any(watch.period_seconds < _FINE_SECONDS for watch in self._watches.values())
        return 10 if fine else _FINE_SECONDS

    async def check_room(self, name: ResourceName) -> None:
        """Refuse an alarm that is new where its region has as many as it may.

        Raises:
            AwsError: `LimitExceeded`.
        """
        await self.follow()
        if name.key in self._alarms:
            return
        if sum(each.name[:2] == name[:2] for each in self._alarms.values()) >= ALARMS_MAX:
            raise error(
                "LimitExceededFault",
                "The quota for the number of alarms for this customer has already been reached.",
            )

    def get(self, key: str) -> Alarm | None:
        """The alarm under a key."""
        return self._alarms.get(key)

    def _keep(self, key: str, alarm: Alarm) -> None:
        self._alarms[key] = alarm
        if alarm.kind == METRIC:
            self._watches[key] = AlarmWatch.of(alarm)
        else:
            self._watches.pop(key, None)

    def _written(self, kind: str, key: str, value: object | None) -> None:
        if kind != ALARMS.name:
            return
        if isinstance(value, Alarm):
            self._keep(key, value)
        else:
            self._alarms.pop(key, None)
            self._watches.pop(key, None)
        self.on_change()

    def _forgotten(self, kind: str, _: str) -> None:
        if kind in ("", ALARMS.name):
            self._outdated = True
            self.on_change()


def _nothing() -> None:
    pass
