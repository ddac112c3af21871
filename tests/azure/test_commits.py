"""Configuration by the resource manager is one commit a call, and one more before an endpoint is asked."""

from http import HTTPStatus
from typing import Any, Final, cast

import orjson
import pytest

from redrive.azure.arm.service import Arm, build_operations
from redrive.azure.eventgrid.names import topic_name_of
from redrive.azure.gateway import AzureGateway
from redrive.azure.handshake import QUESTION, HandshakeRequest, Handshakes
from redrive.azure.wire.bearer import TrustAllBearers
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.http import Request
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import VirtualClock
from tests.azure.stage import GROUP, TOPIC, Stage
from tests.engine.commits import Commits

DOMAIN: Final = GROUP._replace(parts=("domains", "shops"))
BILLING: Final = "/providers/Microsoft.EventGrid/eventSubscriptions/billing"
WEBHOOK: Final = {"endpointType": "WebHook", "properties": {"endpointUrl": "https://hook.example/"}}


class Agreeing:
    """An endpoint that answers with the code it is sent, or opens the link at once and says nothing."""

    opens: Handshakes | None = None

    async def push(self, push_request: PushRequest) -> Attempt:
        (event,) = orjson.loads(push_request.body)
        said = ""
        if self.opens is None:
            said = orjson.dumps({"validationResponse": event["data"]["validationCode"]}).decode()
        else:
            path, _, query = event["data"]["validationUrl"].partition("localhost:4566")[2].partition("?")
            await self.opens.answer(Request("GET", path, query, {}, b""))
        return Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, said, 1)

    async def close(self) -> None:
        pass


@pytest.fixture
def hook() -> Agreeing:
    return Agreeing()


@pytest.fixture
def handshakes(stage: Stage, hook: Agreeing) -> Handshakes:
    return Handshakes(stage.engine, {"https": hook}, stage.tokens, stage.clock)


@pytest.fixture
async def commits(stage: Stage) -> Commits:
    await stage.engine.parts.store.new_id()  # numbers are reserved in blocks, with a commit for each block
    return Commits(cast("SqliteStore", stage.engine.parts.store))


@pytest.fixture
def gateway(stage: Stage, clock: VirtualClock, handshakes: Handshakes) -> AzureGateway:
    arm = Arm(
        clock,
        TrustAllBearers(),
        build_operations(stage.engine, handshakes, lambda _: None),
        None,
        stage.engine.resources.documents,
    )
    return AzureGateway(stage.engine.runtime, [arm])


async def call(gateway: AzureGateway, method: str, path: str, document: Any = None) -> Any:
    body = b"" if document is None else orjson.dumps(document)
    answer = await gateway.answer(Request(method, path, "", {"host": "localhost:4566"}, body))
    assert answer.status < HTTPStatus.BAD_REQUEST, answer.body
    return orjson.loads(answer.body or b"null")


def at_webhook(**properties: Any) -> Any:
    return {"properties": {"destination": WEBHOOK, **properties}}


async def state(gateway: AzureGateway) -> str:
    shown = await call(gateway, "GET", f"{TOPIC.text}{BILLING}")
    return str(shown["properties"]["provisioningState"])


async def test_a_webhook_costs_one_commit_before_it_is_asked_and_one_when_it_agreed(
    stage: Stage, gateway: AzureGateway, commits: Commits
) -> None:
    await call(gateway, "PUT", TOPIC.text, {"location": "local"})
    assert commits.taken() == 1
    for _ in range(2):
        await call(gateway, "PUT", f"{TOPIC.text}{BILLING}", at_webhook())
        assert commits.taken() == 2
        assert await state(gateway) == "Succeeded"
    assert await stage.engine.resources.documents.find(QUESTION, "") == []
    await call(gateway, "DELETE", f"{TOPIC.text}{BILLING}")
    assert commits.taken() == 1


async def test_expired_questions_are_removed_in_the_commit_of_the_next_one(
    stage: Stage, gateway: AzureGateway, commits: Commits
) -> None:
    await call(gateway, "PUT", TOPIC.text, {"location": "local"})
    for number in range(3):
        expired = HandshakeRequest(
            f"{number}", topic_name_of(TOPIC), "gone", "https://gone.example", stage.clock.now()
        )
        await stage.engine.resources.documents.create(QUESTION, expired.id, expired)
    commits.taken()
    await call(gateway, "PUT", f"{TOPIC.text}{BILLING}", at_webhook())
    assert commits.taken() == 2
    assert await stage.engine.resources.documents.find(QUESTION, "") == []


async def test_a_link_that_was_opened_before_the_event_subscription_was_written_counts(
    gateway: AzureGateway, commits: Commits, hook: Agreeing, handshakes: Handshakes
) -> None:
    hook.opens = handshakes
    await call(gateway, "PUT", TOPIC.text, {"location": "local"})
    commits.taken()
    await call(gateway, "PUT", f"{TOPIC.text}{BILLING}", at_webhook())
    assert await state(gateway) == "Succeeded"
    assert commits.taken() == 3, "the question, the link, the event subscription"


async def test_an_event_subscription_that_has_expired_is_replaced_in_the_same_commit(
    stage: Stage, gateway: AzureGateway, commits: Commits
) -> None:
    await call(gateway, "PUT", TOPIC.text, {"location": "local"})
    ends = "2026-01-02T00:00:00Z"
    await call(gateway, "PUT", f"{TOPIC.text}{BILLING}", at_webhook(expirationTimeUtc=ends))
    (before,) = await stage.engine.resources.subscriptions.all_after("", 10)
    assert before.expires_at is not None
    await stage.clock.sleep_until(before.expires_at)
    await stage.engine.until_quiet()
    commits.taken()
    await call(gateway, "PUT", f"{TOPIC.text}{BILLING}", at_webhook())
    assert commits.taken() == 2
    (after,) = await stage.engine.resources.subscriptions.all_after("", 10)
    assert (after.expires_at, after.queue_id != before.queue_id) == (None, True)
    assert [one.id for one in await stage.engine.resources.queues.tombstones()] == [before.queue_id]


async def test_a_domain_topic_comes_and_goes_with_its_event_subscription_in_the_same_commit(
    stage: Stage, gateway: AzureGateway, commits: Commits
) -> None:
    await call(gateway, "PUT", DOMAIN.text, {"location": "local"})
    for name in ("billing", "shipping"):
        path = f"{DOMAIN.text}/topics/London{BILLING}".replace("billing", name)
        await call(gateway, "PUT", path, at_webhook())
    commits.taken()
    for left in (2, 1):
        name = "shipping" if left == 2 else "billing"
        await call(gateway, "DELETE", f"{DOMAIN.text}/topics/London{BILLING}".replace("billing", name))
        assert commits.taken() == 1
        assert len(await stage.engine.resources.topics.all_after("")) == left
