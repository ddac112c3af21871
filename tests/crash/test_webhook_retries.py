"""A message on its way to a webhook that fails, through kill -9 in each phase of the sample policy."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.cli.demo_server import Billing
from tests.aws.sns.samples import DELIVERY_POLICY
from tests.contracts.aws.sns.client import Sns
from tests.services.server import Server, new_server

ORDER = "order 4711"
SAMPLE = {"healthyRetryPolicy": DELIVERY_POLICY["healthyRetryPolicy"]}


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    sqlite = request.param == "sqlite"
    store = f"sqlite:///{tmp_path}/redrive.db" if sqlite else request.getfixturevalue("postgres_database")
    one = new_server(store, "--clock", "simulated", "--allow-reset", directory=tmp_path)
    one.start()
    try:
        yield one
    finally:
        one.kill()


def test_no_phase_starts_over_and_no_attempt_is_lost(server: Server) -> None:
    billing = Billing(server.now)
    sns = Sns(server)
    topic, dead = sns.topic(), sns.sqs.queue()
    topic.subscribe(
        "http",
        billing.url,
        DeliveryPolicy=json.dumps(SAMPLE),
        RedrivePolicy=json.dumps({"deadLetterTargetArn": dead.arn}),
    )
    server.advance(1)
    billing.answers = lambda _: 503
    topic.publish(ORDER)
    counts = []
    for seconds in (0, 1.5, 30, 600, 7200):  # at once, pre-backoff, backoff, post-backoff, to the end
        server.advance(seconds)
        counts.append(len(billing.visits_of(ORDER)))
        server.kill()
        server.start()
    billing.close()
    assert counts[0] == 4
    assert counts == sorted(counts)
    assert len(set(counts[:-1])) > 2, "the kills have to come in different phases"
    assert counts[-1] == 51
    (letter,) = dead.receive()
    assert ORDER in letter["Body"]
