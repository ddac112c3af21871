"""The guards of the whole server, over the wire."""

from collections.abc import Iterator

import pytest

from tests.services.clients import sdk
from tests.services.server import Server, serving

TOKEN = "a-token-of-a-scraper"
CREATE = "Action=CreateQueue&QueueName=by-a-page&Version=2012-11-05"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
EVIL = "https://evil.example.com"


@pytest.fixture(scope="module")
def trusting() -> Iterator[Server]:
    with serving("sqlite://:memory:", "--allow-reset", "--allow-hosts", "queues.corp.example") as server:
        yield server


@pytest.fixture(scope="module")
def strict() -> Iterator[Server]:
    with serving("sqlite://:memory:", "--auth", "required") as server:
        yield server


def status(server: Server, method: str, path: str, body: bytes = b"", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.ask(method, path, body, named)[0]


def test_a_page_makes_no_queue_and_removes_nothing(trusting: Server) -> None:
    sqs = sdk(trusting.url)
    kept = sqs.create_queue(QueueName="kept")["QueueUrl"]
    assert (
        status(trusting, "GET", f"/?{CREATE}", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors") == 403
    )
    assert status(trusting, "POST", "/", CREATE.encode(), Origin=EVIL, **FORM) == 403
    assert status(trusting, "POST", "/_redrive/reset", Origin=EVIL) == 403
    assert status(trusting, "GET", f"/?{CREATE}", Host="evil.example.com") == 403
    assert status(trusting, "GET", "/_redrive/queues", Host="evil.example.com:4566") == 403
    assert sqs.list_queues()["QueueUrls"] == [kept]
    metrics = trusting.ask("GET", "/_redrive/metrics")[1].decode().splitlines()
    assert 'redrive_requests_refused_total{reason="CrossSiteRequest"} 3' in metrics
    assert 'redrive_requests_refused_total{reason="UnknownHost"} 2' in metrics
    assert "identity='https://evil.example.com'" not in trusting.log.read_text()  # the second of a minute
    assert "authentication.refused address=127.0.0.1" in trusting.log.read_text()


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "redrive:4566",
        "host.docker.internal:4566",
        "sqs.us-east-1.localhost.localstack.cloud:4566",
    ],
)
def test_programs_are_admitted_by_the_usual_host_names(trusting: Server, host: str) -> None:
    headers = {
        "Host": host,
        "X-Amz-Target": "AmazonSQS.ListQueues",
        "Content-Type": "application/x-amz-json-1.0",
    }
    assert trusting.ask("POST", "/", b"{}", headers)[0] == 200


def test_a_name_that_is_allowed_is_answered(trusting: Server) -> None:
    assert status(trusting, "GET", "/_redrive/queues", Host="queues.corp.example:4566") == 200
    assert status(trusting, "GET", "/_redrive/queues", Host="sqs.us-east-1.queues.corp.example") == 200


def test_with_signatures_required_any_host_and_origin_is_admitted(strict: Server) -> None:
    assert status(strict, "GET", "/_redrive/health", Host="queues.example", Origin=EVIL) == 200


def test_metrics_are_for_this_machine(strict: Server) -> None:
    assert status(strict, "GET", "/_redrive/metrics") == 200
    assert status(strict, "GET", "/_redrive/metrics", X_Forwarded_For="192.0.2.7") == 401
    assert status(strict, "GET", "/_redrive/metrics", Host="evil.example.com") == 403


def test_metrics_with_a_token_are_for_those_who_have_it() -> None:
    with serving("sqlite://:memory:", "--auth", "required", "--metrics-token", TOKEN) as server:
        assert status(server, "GET", "/_redrive/metrics") == 401
        assert status(server, "GET", "/_redrive/metrics", Authorization="Bearer guess") == 401
        answered, body = server.ask("GET", "/_redrive/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answered == 200
        assert b'redrive_requests_refused_total{reason="MetricsTokenInvalid"} 1' in body
        assert TOKEN not in server.log.read_text()
