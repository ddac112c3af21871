"""Audit: who did what, by the console and by the control routes; searched, checked for gaps, and downloaded."""

import difflib
from dataclasses import asdict
from typing import Any, Final

import orjson

from redrive.console.auditing import TERMS, Predicate, read_terms
from redrive.console.pages.downloads import CSV, as_csv
from redrive.console.visit import PAGE_ROWS, File, Page, Unusable, Visit, whole
from redrive.console.words import moment
from redrive.model.search import SearchInvalidError
from redrive.telemetry.audit import KEPT_DAYS, AuditEntry, KeptEntry, gaps

LOOKED_AT: Final = 1_000  # entries: one read
DOWNLOADED_MAX: Final = 5_000
_COLUMNS: Final = ("at", "who", "action", "on", "what", "by", "address", "before", "after", "digest")
_REFUSED: Final = 422


async def listing(visit: Visit) -> Page:
    """The entries of an account and region that a search is for, latest first, of a thousand that are looked at."""
    text = visit.parameter("q").strip()
    refusal, holds = _search(text, visit.now)
    entries = await visit.installation.audit.entries(visit.scope, LOOKED_AT, _before(visit))
    gap_positions = gaps(entries)
    hits = [] if holds is None else [each for each in entries if holds(each.entry)]
    rows = hits[:PAGE_ROWS]
    last = entries[-1] if len(entries) == LOOKED_AT else None  # the next page begins behind it
    if len(hits) > PAGE_ROWS:
        last = rows[-1]
    values = {
        "q": text,
        "refusal": refusal,
        "terms": TERMS,
        "rows": [_row(visit, each, gap=each.position in gap_positions) for each in rows],
        "looked_at": len(entries),
        "gaps": len(gap_positions),
        "kept_days": KEPT_DAYS,
        "form": visit.link("audit"),
        "downloads": [
            (name, visit.link("audit", "download", q=text, format=kind))
            for kind, name in (("jsonl", "JSON lines"), ("csv", "CSV"))
        ],
        "first": visit.link("audit", q=text) if visit.parameter("before") else "",
        "next": "" if last is None else visit.link("audit", q=text, before="{}.{}".format(*last.position)),
    }
    is_half_typed = refusal and visit.live_alone  # the list follows while one types, and says what is missing
    return Page("audit.html", values, _REFUSED if refusal and not is_half_typed else 200, live_seconds=5)


def _search(text: str, now: int) -> tuple[str, Predicate | None]:
    """The reason that a search cannot be read for, or its predicate."""
    try:
        return "", read_terms(text, now)
    except SearchInvalidError as error:
        return str(error), None


def _before(visit: Visit) -> tuple[int, int] | None:
    at, dot, seq = visit.parameter("before").partition(".")
    return (whole(at), whole(seq)) if dot else None


def _row(visit: Visit, record: KeptEntry, *, gap: bool) -> dict[str, Any]:
    """The row of an entry; `gap`: entries before it are missing."""
    entry = record.entry
    return {
        "id": "{}-{}".format(*record.position),
        "entry": entry,
        "gap": gap,
        "who": entry.who.rpartition(":")[2] or "anybody",
        "only": visit.link("audit", q=f'on:"{entry.on}"'),
        "undo": f"{visit.base}{entry.undo}" if entry.undo else "",
        "fields": [(name, each) for name, values in entry.fields.items() for each in values],
        "difference": _difference(entry),
        "digest": record.digest,
    }


def _difference(entry: AuditEntry) -> list[str]:
    """The lines that a change took away and put there, each with its sign."""
    before, after = entry.before.splitlines(), entry.after.splitlines()
    lines = difflib.unified_diff(before, after, lineterm="", n=1)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


async def download(visit: Visit) -> File:
    """The newest entries that a search is for: lines of JSON, each as it is kept and with its digest; or a table.

    Raises:
        Unusable: The search cannot be read, or there is no such format.
    """
    kind = visit.parameter("format", "jsonl")
    if kind not in ("jsonl", "csv"):
        raise Unusable("There are two formats: jsonl and csv.")
    refusal, holds = _search(visit.parameter("q"), visit.now)
    if holds is None:
        raise Unusable(refusal)
    entries = await visit.installation.audit.entries(visit.scope, DOWNLOADED_MAX)
    rows = [{**asdict(each.entry), "digest": each.digest} for each in entries if holds(each.entry)]
    if kind == "csv":
        table = [{**row, "at": moment(row["at"])} for row in rows]
        return File(
            "audit.csv", CSV, as_csv(_COLUMNS, [{name: row[name] for name in _COLUMNS} for row in table])
        )
    return File("audit.jsonl", "application/x-ndjson", b"".join(orjson.dumps(row) + b"\n" for row in rows))
