"""The history of alarms: shown page by page, and swept when it is too old."""

from typing import Final

from redrive.aws.cloudwatch.alarms.describing import ALARM_PAGES
from redrive.aws.cloudwatch.alarms.operations import resource_name
from redrive.aws.cloudwatch.alarms.records import (
    HISTORY,
    HISTORY_KEPT_MS,
    METRIC,
    HistoryItem,
    history_prefix,
)
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Removal
from redrive.engine.resources import Documents

#: Items that one call looks at: 0.2 s of processor time.
LOOKED_AT_MAX: Final = 10_000
_SWEPT_AT_ONCE: Final = 500


class History:
    """Shows what happened to alarms."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def describe_alarm_history(self, call: Call, params: Structure) -> Structure:
        name: str | None = params.get("AlarmName")
        prefix = (
            f"{call.account}/{call.region}/" if name is None else history_prefix(resource_name(call, name))
        )
        stored = await self._documents.stored(HISTORY, prefix, limit=LOOKED_AT_MAX)
        entries = [(_document_key(key), item) for key, _, item in stored if _is_wanted(item, params)]
        ascending = params.get("ScanBy") == "TimestampAscending"
        entries.sort(key=lambda pair: pair[0], reverse=not ascending)
        page, ending = ALARM_PAGES.cut(
            "DescribeAlarmHistory", params, entries, lambda pair: pair[0], descending=not ascending
        )
        return {"AlarmHistoryItems": [_as_structure(item) for _, item in page], **ending}

    async def sweep(self, now: int) -> None:
        """Remove items that are too old."""
        after = ""
        while page := await self._documents.stored(HISTORY, "", after, _SWEPT_AT_ONCE):
            after = page[-1][0]
            if old := [key for key, _, item in page if item.at < now - HISTORY_KEPT_MS]:
                await self._documents.write([Removal(HISTORY, key) for key in old])


def _document_key(key: str) -> str:
    """The place among all items, as text that sorts: later ones have the greater."""
    prefix, *numbers = key.rsplit("/", 3)
    position = "/".join(f"{10 ** len(number) - 1 - int(number):0{len(number)}d}" for number in numbers)
    return f"{position}/{prefix}"


def _is_wanted(item: HistoryItem, params: Structure) -> bool:
    if item.kind not in (params.get("AlarmTypes") or (METRIC,)):
        return False
    if params.get("HistoryItemType") not in (None, item.type):
        return False
    begin, end = params.get("StartDate"), params.get("EndDate")
    return (begin is None or item.at >= begin) and (end is None or item.at <= end)


def _as_structure(item: HistoryItem) -> Structure:
    return {
        "AlarmName": item.alarm,
        "AlarmType": item.kind,
        "Timestamp": item.at,
        "HistoryItemType": item.type,
        "HistorySummary": item.summary,
        "HistoryData": item.data,
    }
