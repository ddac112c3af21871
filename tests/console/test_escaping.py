"""Strangers' texts are escaped on every page of the route table: names, bodies, endpoints' answers, and what links carry.

A route that no path here leads to fails the test, so that a new page cannot be forgotten.
"""

from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from redrive.console import routes
from redrive.console.nodes import NODE, Node, Nodes
from redrive.console.safety import POLICY
from redrive.engine.operations import RedriveOptions
from redrive.engine.ports import NewDelivery
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.model.topic import Message, Subscription, Topic
from tests.console.services import make_services, service_pages
from tests.console.test_event_grid import subscribed
from tests.console.world import BUSY, ROOM, ROOT, SCOPE, Visitor, World, visiting

MARK = "<x-evil"
_AZURE = f"{ROOT}/00000000-0000-0000-0000-000000000000/rg"
STRANGE = st.text(alphabet=st.sampled_from("<>\"'&{}%x\u202e \n;="), max_size=12)


@given(STRANGE)
@example("\" onload='x' --><x-evil>")
@settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow])
async def test_strangers_texts_are_escaped_on_every_page(text: str) -> None:
    evil = f"{MARK} {text}"
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await make_services(visitor, evil)  # passes time
        paths = [
            *service_pages(services),
            *await _paths_of_messages(visitor, evil),
            *await _paths_of_event_grid(visitor, evil),
            *await _paths_of_views_and_nodes(visitor, evil),
            *(
                f"{ROOT}/{path}"
                for path in (
                    "find",
                    f"{SCOPE.account}/{SCOPE.region}/audit/download",
                    "navigation",
                    f"{SCOPE.account}/{SCOPE.region}/redrives",
                )
            ),
        ]
        reached = {id(_route(path)) for path in paths}
        forgotten = [
            each.pattern for each in routes.ROUTES if each.method == "GET" and id(each) not in reached
        ]
        assert forgotten == []
        for path in paths:
            await _is_escaped(visitor, path)
            await _is_escaped(visitor, _with(path, q=evil, to=evil, name=evil, after=evil, cause=evil))


async def _is_escaped(visitor: Visitor, path: str) -> None:
    """A page shows no tag that a stranger wrote, whichever way it answers; nor does its live part alone."""
    for headers in ({}, {"x-redrive-part": "live"}):
        answer = await visitor.get(path, **headers)
        assert answer.headers["Content-Security-Policy"] == POLICY
        if answer.content_type.startswith("text/html"):
            assert MARK.encode() not in answer.body, path
            assert b"onload='" not in answer.body, path
        else:
            assert answer.status == 303 or "attachment" in answer.headers["Content-Disposition"], path


async def _paths_of_messages(visitor: Visitor, evil: str) -> list[str]:
    """Queues, a topic and dead letters whose names, bodies and answers are strange."""
    engine = visitor.server.core.engine
    resources = engine.resources
    dead = await resources.queues.create(Queue(0, SCOPE._replace(name=f"dead {evil}"), tags={evil: evil}))
    target = DeadLetterTarget(dead.name, 3)
    orders = await resources.queues.create(
        Queue(0, SCOPE._replace(name=f"orders {evil}"), dead_letter=target)
    )
    topic = await resources.topics.create(
        Topic(0, SCOPE._replace(name=f"topic {evil}"), "sns", tags={evil: evil})
    )
    wanted = Subscription(
        f"s {evil}",
        topic.name,
        0,
        SCOPE.account,
        "https",
        f"https://{evil}",
        filter_text=f'{{"{evil}": ["{evil}"]}}',
        dead_letter=dead.name,
    )
    subscription = await resources.subscriptions.create(wanted)
    world = World(engine, dead, orders, topic, subscription)
    note = BUSY._replace(reason=evil, response=evil)
    seq, *_ = await world.die(evil, f'{{"a": "{evil}"}}', note=note)
    of_topic = NewDelivery(dead.id, bytes(16), evil, None, 0, 0, origin=subscription.queue_id, note=note)
    await engine.parts.store.enqueue([of_topic])
    await engine.messages.send(orders, [Message(engine.runtime.message_id(), evil, group_id=evil)])
    (waiting,) = await engine.messages.peek(orders, 1)
    aside, *_ = await world.die("aside", note=note)
    await engine.operations.moves.set_aside(dead, [aside])
    task = await engine.operations.redrives.start(dead, None, None, RedriveOptions(delay_ms=9_000, by=evil))
    at_dead = _path(ROOM, "dead-letters", dead.name.name)
    at_queue, at_topic = _path(ROOM, "queues", orders.name.name), _path(ROOM, "topics", topic.name.name)
    return [
        *(f"{ROOT}/{path}" for path in ("", "keys", "login", "schedules", f"place?place={quote(evil)}%2Fx")),
        *(
            f"{ROOM}/{path}"
            for path in ("dead-letters", "dead-letters/redrive-set-aside", "queues", "topics")
        ),
        *(f"{ROOM}/{path}" for path in ("messages", "tail", "metrics", "endpoints?state=all", "schedules")),
        _path(ROOM, "schedules")
        + "?"
        + urlencode({"topic": topic.name.name, "subscription": subscription.id}),
        *(
            f"{at_dead}{path}"
            for path in ("", "?cause=all", "?cause=all&q=x", "/search?q=x", "/facets", "/plan?what=all")
        ),
        f"{at_dead}/download?format=csv",
        f"{at_dead}/{seq}",
        f"{at_dead}/{seq}/edit",
        _path(at_dead, "tasks", task.id),
        *(f"{at_queue}{path}" for path in ("", "/messages", "/messages/search?q=x", "/messages/facets")),
        *(f"{at_queue}{path}" for path in (f"/messages/{waiting.seq}", "/send", "/import", "/purge")),
        _path(ROOM, "messages", evil),
        f"{ROOM}/messages/00000000-0000-0000-0000-000000000000",
        *(f"{at_topic}{path}" for path in ("", "?body=x", "/publish")),
        _path(at_topic, subscription.id),
        _path(at_topic, subscription.id, "test"),
        f"{ROOM}/new-queue",
        f"{ROOM}/dead-letter-queue?{urlencode({'queue': orders.name.name, 'dead': evil, 'receives': evil})}",
        f"{ROOM}/dead-letter-queue?{urlencode({'topic': topic.name.name, 'subscription': subscription.id})}",
    ]


async def _paths_of_event_grid(visitor: Visitor, evil: str) -> list[str]:
    made = await subscribed(visitor, filter={"subjectBeginsWith": evil}, labels=[evil])
    return [
        f"{_AZURE}/event-grid",
        f"{_AZURE}/event-grid/topics%3Aorders/billing",
        f"{_AZURE}/topics/{made.topic.name}",
    ]


async def _paths_of_views_and_nodes(visitor: Visitor, evil: str) -> list[str]:
    saved = {
        "to": f"/{SCOPE.account}/{SCOPE.region}/queues?prefix={quote(evil)}",
        "name": evil.replace("\n", ""),
    }
    assert (
        await visitor.post(f"{ROOM}/views", {**saved, "name": saved["name"].replace("\u202e", "")})
    ).status == 303
    nodes = [
        begin.__self__
        for extension in visitor.server.extensions
        for begin in extension.lifecycle.start
        if isinstance(getattr(begin, "__self__", None), Nodes)
    ]
    nodes[0]._shared = True
    node = Node(evil, evil, 0, 0, [(evil, evil, evil)])
    await visitor.server.core.engine.resources.documents.create(NODE, evil, node)
    return [f"{ROOM}/views", f"{ROOM}/views?to={quote(evil)}", f"{ROOT}/settings?node={quote(evil)}"]


def _route(path: str) -> routes.Route:
    found = routes.find("GET", path.partition("?")[0].removeprefix(ROOT))
    assert found is not None, path
    return found[0]


def _path(beginning: str, *parts: str) -> str:
    return "/".join([beginning, *(quote(part, safe="") for part in parts)])


def _with(path: str, **query: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{urlencode(query)}"
