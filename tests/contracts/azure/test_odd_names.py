"""Names that no resource has, on each store: PostgreSQL takes no text with a NUL in it, also to look for it."""

import orjson
import pytest

from tests.contracts.azure.namespaces import SUBSCRIPTION
from tests.services.server import Server

_GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
_EVENT_GRID = f"{_GROUP}/rg/providers/Microsoft.EventGrid"


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("PUT", f"{_GROUP}/%00", 400),
        ("GET", f"{_EVENT_GRID}/topics/%00", 400),
        ("GET", f"{_EVENT_GRID}/topics?$skipToken=AA==", 400),
        ("GET", f"{_EVENT_GRID}/topics/t%00/providers/Microsoft.EventGrid/eventSubscriptions", 400),
        ("GET", "/eventsubscriptions/s/validate?id=%00", 404),
        ("POST", f"/eventgrid/{SUBSCRIPTION}/rg/%00/api/events", 404),
        ("POST", f"/eventgrid/{SUBSCRIPTION}/rg/%00/topics/t:publish", 404),
    ],
)
def test_requests_for_impossible_names_are_refused(
    server: Server, method: str, target: str, status: int
) -> None:
    assert server.ask(method, target, b'{"location":"local"}')[0] == status


def test_an_event_for_no_topic_of_a_domain(server: Server) -> None:
    """A publisher may name any topic; only those that stand have the event besides the domain."""
    assert server.ask("PUT", f"{_EVENT_GRID}/domains/shops", b'{"location":"local"}')[0] == 201
    event = {
        "id": "1",
        "topic": "a\0b",
        "subject": "s",
        "eventType": "t",
        "eventTime": "2026-01-02T03:04:05Z",
    }
    path = f"/eventgrid/{SUBSCRIPTION}/rg/domains/shops/api/events"
    assert server.ask("POST", path, orjson.dumps([event]))[0] == 200
