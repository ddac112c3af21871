"""Needs: the things that wait for a person, as Overview names them."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from redrive.console.arrivals import Burst, bursts
from redrive.console.unattended import WAITED_MINUTES, unattended
from redrive.console.visit import Visit
from redrive.console.words import place_text, why_failed
from redrive.engine.operations import DeadLetterQueue
from redrive.model.metric import MINUTE_MS
from redrive.model.names import ResourceName
from redrive.model.task import MoveTask, TaskState

NEEDS_MAX: Final = 50  # of each kind
COUNTED_MAX: Final = 100_000  # of each dead-letter queue: 8 ms
BURSTS_MAX: Final = 10  # of the fullest: 14,000 rows are read where something died in each minute of the day
#: A redrive task that failed is named for a day, or until somebody starts another of its queue. One that stopped itself
#: is named until somebody resumes or cancels it: until then nobody can start another.
FAILED_NAMED_MS: Final = 24 * 60 * MINUTE_MS


async def needs(visit: Visit, places: list[ResourceName]) -> list[dict[str, Any]]:
    """The needs of these accounts and regions, and the redrive tasks under way there, as rows."""
    operations = visit.engine.operations
    dead = await operations.dead_letter_queues_of(places, COUNTED_MAX)
    tasks = await operations.current_redrive_tasks(visit.now - FAILED_NAMED_MS)
    rows = [_task(visit, task) for task in tasks if task.source._replace(name="") in places]
    return [
        *await _dead(visit, dead),
        *[task for task in rows if task["why"]][:NEEDS_MAX],
        *await _resting(visit, places),
        *await _unattended(visit, places, {each.queue.name for each in dead}),
        *[task for task in rows if not task["why"]][:NEEDS_MAX],
    ]


async def _dead(visit: Visit, queues: Sequence[DeadLetterQueue]) -> list[dict[str, Any]]:
    """The dead-letter queues that are not empty, the fullest first."""
    found = sorted((queue for queue in queues if queue.letters), key=lambda queue: -queue.letters)
    fullest = [each.queue for each in found[:BURSTS_MAX]]
    latest = await bursts(visit.installation.telemetry, fullest, visit.now)
    return [_dead_letters(visit, each, latest.get(each.queue.id)) for each in found[:NEEDS_MAX]]


def _dead_letters(visit: Visit, dead: DeadLetterQueue, burst: Burst | None) -> dict[str, Any]:
    name = dead.queue.name
    return {
        "kind": "dead",
        "number": dead.letters,
        "at_most": dead.at_most,
        "burst": burst,
        "name": name.name,
        "link": visit.link_in(name, "dead-letters", name.name),
        "place": place_text(name),
    }


async def _resting(visit: Visit, places: list[ResourceName]) -> list[dict[str, Any]]:
    """The places where endpoints rest."""
    circuits = await visit.engine.operations.open_circuits()
    found = []
    for place in places:
        prefix = f"{place.account}/{place.region}/"
        resting = [state for key, state in circuits.items() if key.startswith(prefix)]
        if not resting:
            continue
        first = min(resting, key=lambda state: state.until)
        found.append(
            {
                "kind": "rest",
                "number": len(resting),
                "until": first.until,
                "reason": f"{first.reason} {first.status or ''}".strip(),
                "link": visit.link_in(place, "endpoints"),
                "place": place_text(place),
            }
        )
    return found


async def _unattended(
    visit: Visit, places: list[ResourceName], dead_letter_queues: Collection[ResourceName]
) -> list[dict[str, Any]]:
    """The queues from which nobody receives, the longest waiting first."""
    levels, telemetry = visit.installation.queue_levels(), visit.installation.telemetry
    found = await unattended(levels, telemetry, places, dead_letter_queues, visit.now)
    return [
        {
            "kind": "unattended",
            "number": level.counts.available,
            "age_ms": level.age_seconds * 1000,
            "minutes": WAITED_MINUTES,
            "name": level.name.name,
            "link": visit.link_in(level.name, "queues", level.name.name),
            "place": place_text(level.name),
        }
        for level in found
    ]


def _task(visit: Visit, task: MoveTask) -> dict[str, Any]:
    """A redrive task, and why it failed or stopped itself, if it did."""
    failed = task.state is TaskState.FAILED
    badge, sign = (
        ("bad", "●") if failed else ("warn", "▲") if task.state is TaskState.PAUSED else ("info", "↻")
    )
    place = task.source._replace(name="")
    return {
        "kind": "task",
        "badge": badge,
        "sign": sign,
        "failed": failed,
        "why": why_failed(task.failure) if failed else task.stopped_why,
        "task": task,
        "link": visit.link_in(place, "dead-letters", task.source.name, "tasks", task.id),
        "place": place_text(place),
    }
