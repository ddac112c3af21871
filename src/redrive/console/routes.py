"""Routes: which page answers which path, whether it changes something, and who may see it without signing in."""

import functools
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import unquote

from redrive.console.pages import (
    alarms,
    apis,
    audit,
    clock,
    dead_letters,
    doctor,
    downloads,
    endpoints,
    event_grid,
    event_sources,
    finding,
    functions,
    invocations,
    kms,
    letters,
    login,
    logs,
    messages,
    metrics,
    new_alarms,
    new_queues,
    overview,
    pushing,
    queues,
    redrives,
    rehearsing,
    schedules,
    sending,
    settings,
    stacks,
    tail,
    topics,
    traces,
    views,
)
from redrive.console.session import ConsoleSessions
from redrive.console.visit import File, Page, Redirect, Visit

Answered: TypeAlias = Page | Redirect | File
PageFunction: TypeAlias = Callable[[Visit], Awaitable[Answered]]
SignIn: TypeAlias = Callable[[Visit, ConsoleSessions, str], Awaitable[Answered]]


@dataclass(frozen=True, slots=True)
class Route:
    """A path that the console answers."""

    method: str  # GET or POST
    pattern: str  # The path; what stands in braces is handed to the page
    page: PageFunction  # Answers it
    writes: bool = False  # Whether it changes something: refused to who may only look
    open: bool = False  # Whether it needs no sign-in
    # Whether it is a list or a search, which can be saved as a view with what was chosen on it.
    savable: bool = False
    # Whether its live part is the navigation, which needs what stands around other pages.
    navigates: bool = False
    undoes: bool = False  # Whether a page may offer it as the way to take back what was just done
    action: str = ""  # Name of the action in the audit; empty: it is not audited
    special: SignIn | None = None  # Answers it instead, with the sessions and the visitor's address


def _get(pattern: str, page: PageFunction) -> Route:
    return Route("GET", pattern, page)


def _list(pattern: str, page: PageFunction) -> Route:
    return Route("GET", pattern, page, savable=True)


def _post(pattern: str, page: PageFunction, action: str = "") -> Route:
    return Route("POST", pattern, page, writes=True, action=action)


def _turn(pattern: str, page: PageFunction, action: str) -> Route:
    """A change there and back, which undoes itself."""
    return Route("POST", pattern, page, writes=True, undoes=True, action=action)


_P: Final = "/{account}/{region}"
_DEAD: Final = f"{_P}/dead-letters"
_QUEUE: Final = f"{_P}/queues/{{queue}}"
_TOPIC: Final = f"{_P}/topics/{{topic}}"
_STACK: Final = f"{_P}/stacks/{{stack}}"
_KEY: Final = f"{_P}/kms/{{key}}"
_FUNCTION: Final = f"{_P}/functions/{{function}}"

ROUTES: Final = (
    _get("/", overview.page),
    Route("GET", "/login", login.page, open=True),
    Route("POST", "/login", login.page, open=True, special=login.sign_in),
    Route("POST", "/logout", login.page, open=True, special=login.sign_out),
    _get("/place", overview.go_to_scope),
    _get("/keys", overview.keys),
    _get("/find", finding.page),
    Route("GET", "/navigation", finding.rooms, navigates=True),
    _post("/clock", clock.move),
    _get("/settings", settings.page),
    _get("/settings/health", doctor.page),
    _get("/settings/keys", settings.keys),
    _post("/settings/keys", settings.make_key, "create-access-key"),
    _get("/settings/keys/{key}", settings.key_form),
    # Undone from the audit alone: this form deletes keys too, and what a page offers to undo comes from a cookie.
    _post("/settings/keys/{key}", settings.change_key, "change-access-key"),
    _get("/schedules", schedules.lab),
    _list(f"{_P}/schedules", schedules.lab),
    _turn(f"{_P}/schedules", schedules.save, "change-policy"),
    _list(_DEAD, dead_letters.listing),
    _list(f"{_DEAD}/{{queue}}", dead_letters.workbench),
    _get(f"{_DEAD}/{{queue}}/download", downloads.download),
    _get(f"{_DEAD}/{{queue}}/search", dead_letters.search_slice),
    _get(f"{_DEAD}/{{queue}}/facets", dead_letters.common_values),
    _get(f"{_DEAD}/{{queue}}/plan", redrives.plan),
    _post(f"{_DEAD}/{{queue}}/plan", redrives.start, "redrive"),
    _post(f"{_DEAD}/{{queue}}/rehearse", rehearsing.rehearse, "rehearse"),
    _turn(f"{_DEAD}/{{queue}}/set-aside", redrives.set_aside, "set-aside"),
    _turn(f"{_DEAD}/{{queue}}/bring-back", redrives.bring_back, "bring-back"),
    _get(f"{_DEAD}/{{queue}}/tasks/{{task}}", redrives.task),
    _post(f"{_DEAD}/{{queue}}/tasks/{{task}}", redrives.change, "change-redrive"),
    _get(f"{_DEAD}/{{queue}}/{{seq}}", letters.letter),
    _get(f"{_DEAD}/{{queue}}/{{seq}}/edit", letters.edit),
    _post(f"{_DEAD}/{{queue}}/{{seq}}/edit", letters.replace_body, "edit"),
    _list(f"{_P}/redrives", redrives.listing),
    _list(f"{_P}/queues", queues.listing),
    _get(f"{_P}/new-queue", new_queues.form),
    _post(f"{_P}/new-queue", new_queues.make, "create-queue"),
    _get(f"{_P}/dead-letter-queue", new_queues.dead_letter_form),
    _turn(f"{_P}/dead-letter-queue", new_queues.set_dead_letters, "set-dead-letter-queue"),
    _get(_QUEUE, queues.one),
    _list(f"{_QUEUE}/messages", messages.listing),
    _get(f"{_QUEUE}/messages/search", messages.search_slice),
    _get(f"{_QUEUE}/messages/facets", messages.common_values),
    _get(f"{_QUEUE}/messages/{{seq}}", messages.one),
    _get(f"{_QUEUE}/send", sending.form),
    _post(f"{_QUEUE}/send", sending.send, "send"),
    _get(f"{_QUEUE}/purge", queues.purge_form),
    _post(f"{_QUEUE}/purge", queues.purge, "purge-queue"),
    _get(f"{_QUEUE}/import", sending.import_form),
    _post(f"{_QUEUE}/import", sending.import_lines, "import"),
    _list(f"{_P}/messages", traces.search),
    _get(f"{_P}/messages/{{message}}", traces.one),
    _list(f"{_P}/endpoints", endpoints.listing),
    _post(f"{_P}/endpoints", endpoints.change, "resume"),
    _turn(f"{_P}/endpoints/hold", endpoints.hold, "hold"),
    _list(f"{_P}/event-grid", event_grid.listing),
    _get(f"{_P}/event-grid/{{topic}}/{{subscription}}", event_grid.one),
    _list(f"{_P}/apis", apis.listing),
    _get(f"{_P}/apis/{{api}}/route", apis.one),
    _post(f"{_P}/apis/{{api}}/route", apis.try_it, "test-route"),
    _list(f"{_P}/event-sources", event_sources.listing),
    _get(f"{_P}/event-sources/{{mapping}}", event_sources.one),
    _turn(f"{_P}/event-sources/{{mapping}}", event_sources.change, "switch-source"),
    _list(f"{_P}/tail", tail.page),
    _list(f"{_P}/metrics", metrics.page),
    _list(f"{_P}/topics", topics.listing),
    _list(_TOPIC, topics.one),
    _get(f"{_TOPIC}/publish", topics.publish_form),
    _post(f"{_TOPIC}/publish", topics.publish, "publish"),
    _get(f"{_TOPIC}/{{subscription}}", topics.subscription),
    _get(f"{_TOPIC}/{{subscription}}/test", pushing.form),
    _post(f"{_TOPIC}/{{subscription}}/test", pushing.push, "test-subscription"),
    _list(f"{_P}/functions", functions.listing),
    _get(_FUNCTION, functions.one),
    _turn(f"{_FUNCTION}/mappings/{{mapping}}", functions.change_mapping, "switch-source"),
    _get(f"{_FUNCTION}/invoke", invocations.form),
    _post(f"{_FUNCTION}/invoke", invocations.invoke, "invoke"),
    _list(f"{_P}/logs", logs.listing),
    _list(f"{_P}/logs/group", logs.events),
    _list(f"{_P}/logs/streams", logs.streams),
    _list(f"{_P}/alarms", alarms.listing),
    _get(f"{_P}/alarms/alarm", alarms.one),
    _turn(f"{_P}/alarms/alarm", alarms.change, "switch-alarm"),
    _get(f"{_P}/alarms/state", alarms.state_form),
    _post(f"{_P}/alarms/state", alarms.set_state, "set-alarm-state"),
    _get(f"{_P}/alarms/new", new_alarms.form),
    _post(f"{_P}/alarms/new", new_alarms.make, "create-alarm"),
    _list(f"{_P}/stacks", stacks.listing),
    _get(_STACK, stacks.one),
    _get(f"{_STACK}/template", stacks.template),
    _post(f"{_STACK}/drift", stacks.detect_drift, "detect-drift"),
    _get(f"{_STACK}/delete", stacks.delete_form),
    _post(f"{_STACK}/delete", stacks.delete, "delete-stack"),
    _list(f"{_P}/audit", audit.listing),
    _get(f"{_P}/audit/download", audit.download),
    _get(f"{_P}/views", views.listing),
    _turn(f"{_P}/views", views.change, "change-views"),
    _list(f"{_P}/kms", kms.listing),
    _get(_KEY, kms.one),
    _turn(_KEY, kms.change, "change-key"),
    _get(f"{_KEY}/delete", kms.delete_form),
    _post(f"{_KEY}/delete", kms.schedule_deletion, "delete-key"),
)


def find(method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
    """The route of a path below the console's own, with the variable parts of it; the first that fits."""
    verb = "GET" if method == "HEAD" else method
    for route in ROUTES:
        if route.method != verb:
            continue
        match = _compiled(route.pattern).fullmatch(path)
        if match is not None:
            return route, {name: unquote(value) for name, value in match.groupdict().items()}
    return None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern))
