"""The health check: what is open, wrong, or would be lost; each with what it costs and a link to mend it."""

from collections.abc import Sequence
from typing import Final

from redrive.console import navigation
from redrive.console.installation import Check
from redrive.console.visit import Page, Visit
from redrive.model.names import ResourceName

LOOKED_AT: Final = 1_000  # queues and subscriptions of an account's region
_SLOW_COMMIT_SECONDS: Final = 0.05
_NAMED_MAX: Final = 3
_SETTINGS: Final = "Exposure"
_STORE: Final = "Store"


async def page(visit: Visit) -> Page:
    """All checks, those that found something first."""
    owner = await navigation.scope_of(visit) or navigation.default_scope(visit)
    settings, store = await visit.installation.doctor.checks()
    groups = {
        _SETTINGS: [
            check._replace(link=visit.link_anywhere("settings"), to="Settings") for check in settings
        ],
        _STORE: store,
        "Nodes": await checks_of_node(visit),
        "Messages": await checks_of_scope(visit, owner),
    }
    wrong = [(group, check) for group, checks in groups.items() for check in checks if check.wrong]
    values = {
        "wrong": wrong,
        "fine": [(group, check) for group, checks in groups.items() for check in checks if not check.wrong],
        "number": sum(map(len, groups.values())),
        "owner": owner,
    }
    return Page("doctor.html", values)


async def checks_of_node(visit: Visit) -> list[Check]:
    """The checks of the nodes, and of how long commits take."""
    nodes = await visit.installation.nodes.all()
    own, now = nodes[0], visit.installation.nodes.now()
    silent = [node.name for node in nodes[1:] if node.is_silent(now)]
    versions = sorted({node.version for node in nodes})
    link, link_text = visit.link_anywhere("settings"), "Nodes"
    seconds = visit.installation.commit_seconds()
    slow = seconds is not None and seconds > _SLOW_COMMIT_SECONDS
    return [
        Check(
            "Nodes",
            f"{len(nodes)}, this one is {own.name}",
            f"{_list(silent)}: silent, killed or cut off from the store" if silent else "",
            link,
            link_text,
        ),
        Check(
            "Versions",
            ", ".join(versions),
            "nodes of several versions share the store: upgrade the older ones" if len(versions) > 1 else "",
            link,
            link_text,
        ),
        Check(
            "Commits",
            "none yet" if seconds is None else f"half of them took {seconds * 1000:g} ms at most",
            "each answer waits for one: the disk or the database is busy or far away" if slow else "",
        ),
    ]


async def checks_of_scope(visit: Visit, owner: ResourceName) -> list[Check]:
    """The checks of an account's region: what loses its failures, and what forgets them too soon."""
    return [await _without_dead_letter_queue(visit, owner), await _forgotten_sooner(visit, owner)]


async def _without_dead_letter_queue(visit: Visit, owner: ResourceName) -> Check:
    """The pushed subscriptions of an account and region whose messages are lost when their attempts run out."""
    resources = visit.engine.resources
    subscriptions = await resources.subscriptions.of_account(owner.account, owner.region, limit=LOOKED_AT)
    pushed = [each for each in subscriptions if not each.topic.private and each.protocol != "queue"]
    losing = [each.redacted_endpoint for each in pushed if each.dead_letter is None]
    return Check(
        "Subscriptions without dead-letter queue",
        f"{len(losing)} of {len(pushed)}",
        f"{_list(losing)}: deliveries whose attempts all fail are lost; set a redrive policy"
        if losing
        else "",
        visit.link_in(owner, "endpoints", state="all"),
        "Subscriptions",
    )


async def _forgotten_sooner(visit: Visit, owner: ResourceName) -> Check:
    """The dead-letter queues that keep letters no longer than their sources keep messages.

    Dead letters keep the moment that they were sent at, so a queue that keeps as long forgets them sooner.
    """
    queues = await visit.engine.resources.queues.find(owner, "", LOOKED_AT)
    kept_ms = {queue.name: queue.retention_ms for queue in queues}
    sooner = [
        queue.dead_letter.queue.name
        for queue in queues
        if queue.dead_letter is not None
        and kept_ms.get(queue.dead_letter.queue, queue.retention_ms) < queue.retention_ms
    ]
    return Check(
        "Dead-letter queues that keep messages no longer than their sources",
        f"{len(set(sooner))} of {len({each.dead_letter.queue for each in queues if each.dead_letter})}",
        f"{_list(sorted(set(sooner)))}: dead letters expire before anybody looks; raise their retention"
        if sooner
        else "",
        visit.link_in(owner, "queues"),
        "Queues",
    )


def _list(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")
