"""Auditing: changes by forms as entries of the trail, and the terms that entries are searched by."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from redrive.console import navigation
from redrive.console.visit import Page, Redirect, Visit
from redrive.model.search import SearchInvalidError, conjunction, read_moment
from redrive.telemetry.audit import AuditEntry

#: The parts of a path, or the fields of a form, that say what was changed.
_NAMED: Final = ("queue", "topic", "subscription", "function", "mapping", "stack", "key", "api", "id", "name")
_OF_PATH: Final = (*_NAMED[:8], "seq", "task")
#: The terms, with an example and the meaning of each.
TERMS: Final[Mapping[str, tuple[str, str]]] = {
    "by": ("by:AKIA…", "who did it"),
    "action": ("action:redrive", "what kind of change"),
    "on": ("on:Rentals-DLQ", "the queue, topic or other thing that was changed"),
    "way": ("way:control", "by the console, or by control, as `redrive dlq` does"),
    "from": ("from:10.0.3.22", "the address that it came from"),
    "since": ("since:7d", "since so long ago, a date, or a time of day (UTC)"),
    "until": ("until:2026-11-22", "before"),
}
Predicate: TypeAlias = Callable[[AuditEntry], bool]


async def note(visit: Visit, action: str, answer: Page | Redirect, address: str) -> None:
    """Record what a form did; nothing, if its answer is a page that names no deed."""
    if isinstance(answer, Page):
        if not answer.did:
            return
        what, undo, before, after = answer.did, None, "", ""
    else:
        what, undo, before, after = answer.sentence, answer.undo, answer.before, answer.after
    undo_path, undo_fields = undo or ("", {})
    owner = navigation.scope_in_address(visit) or navigation.default_scope(visit)
    await visit.installation.audit.record(
        owner,
        AuditEntry(
            visit.now,
            visit.session.key_id,
            action,
            _on(visit),
            what,
            "console",
            address,
            before=before,
            after=after,
            undo=undo_path,
            fields=undo_fields,
        ),
    )


def _on(visit: Visit) -> str:
    names = [visit.args[name] for name in _OF_PATH if visit.args.get(name)]
    return "/".join(names or [visit.parameter(name)[:200] for name in _NAMED if visit.parameter(name)][:2])


def read_terms(text: str, now: int) -> Predicate:
    """The predicate of a search over entries: all its terms hold.

    Raises:
        SearchInvalidError: There are too many terms, or one that is not known, or a time that cannot be read.
    """
    return conjunction(text, lambda term: _read_term(term, now))


def _read_term(term: str, now: int) -> Predicate:
    """A test of entries for one term: `name:value`, or a text anywhere in an entry."""
    name, colon, value = term.partition(":")
    value = value.strip('"').lower()
    if not colon or term.startswith('"'):
        text = term.strip('"').lower()
        return lambda entry: text in f"{entry.who} {entry.action} {entry.on} {entry.what}".lower()
    if name not in TERMS:
        raise SearchInvalidError(f"There is no term “{name}”. There are {', '.join(TERMS)}.")
    if not value:
        raise SearchInvalidError(f"{name}: needs a value, as in {TERMS[name][0]}.")
    if name in ("since", "until"):
        moment = read_moment(value, now)
        if name == "since":
            return lambda entry: entry.at >= moment
        return lambda entry: entry.at < moment
    member = {"by": "who", "way": "by", "from": "address"}.get(name, name)  # terms differ from entries' names
    choices = value.split(",")
    return lambda entry: any(each in str(getattr(entry, member)).lower() for each in choices)
