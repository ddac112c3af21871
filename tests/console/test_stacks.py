"""Stacks on pages: their resources and where these are, drift, and a deletion that asks for the name."""

from urllib.parse import unquote

import pytest

from redrive.console.pages.stacks import own_words
from tests.console.services import Services, make_stack
from tests.console.world import ROOM, Visitor, visiting

STACK = f"{ROOM}/stacks/shop"


async def page(visitor: Visitor, path: str) -> str:
    return (await visitor.get(path)).body.decode()


async def test_a_stack_leads_to_its_resources() -> None:
    async with visiting(clock="simulated", functions="on") as visitor:
        await make_stack(Services(visitor))
        assert "Create complete" in await page(visitor, f"{ROOM}/stacks")
        shown = await page(visitor, STACK)
        assert f"{ROOM}/queues/shop-orders" in shown
        assert f"{ROOM}/topics/shop-news" in shown
        assert f"{ROOM}/logs/group?name=shop%2Flog" in shown
        assert "QueueName" in await page(visitor, f"{STACK}/template")
        assert "the orders" in shown
        assert "exported as shop-queue" in shown
        assert (await visitor.get(f"{ROOM}/stacks/absent")).status == 404


async def test_a_stack_without_parameters_and_outputs_has_a_page() -> None:
    async with visiting(clock="simulated") as visitor:
        template = '{"Resources": {"Plain": {"Type": "AWS::SQS::Queue"}}}'
        await Services(visitor).call(
            "cloudformation", "CreateStack", StackName="plain", TemplateBody=template
        )
        await visitor.server.time.advance(60_000)  # type: ignore[union-attr]  # simulated
        assert "Create complete" in await page(visitor, f"{ROOM}/stacks/plain")


async def test_drift_is_looked_for() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await make_stack(services)
        in_sync = await visitor.post(f"{STACK}/drift", {})
        assert "as its template says" in unquote(in_sync.headers["Set-Cookie"])
        url = (await services.call("sqs", "GetQueueUrl", QueueName="shop-orders"))["QueueUrl"]
        await services.call("sqs", "SetQueueAttributes", QueueUrl=url, Attributes={"DelaySeconds": "9"})
        drifted = await visitor.post(f"{STACK}/drift", {})
        assert "1 resource has drifted" in unquote(drifted.headers["Set-Cookie"])
        assert "modified</span>" in await page(visitor, STACK)


async def test_a_stack_is_deleted_by_its_typed_name_alone() -> None:
    async with visiting(clock="simulated") as visitor:
        services = Services(visitor)
        await make_stack(services)
        asks = await page(visitor, f"{STACK}/delete")
        assert "shop-orders" in asks
        refused = await visitor.post(f"{STACK}/delete", {"typed": "shopp"})
        assert refused.status == 400
        assert "nothing was done" in refused.body.decode()
        assert (await visitor.post(f"{STACK}/delete", {"typed": "shop"})).status == 303
        await visitor.server.time.advance(60_000)  # type: ignore[union-attr]  # simulated
        assert "No stacks" in await page(visitor, f"{ROOM}/stacks?")
        assert "Delete complete" in await page(visitor, f"{ROOM}/stacks?deleted=yes")
        assert not (await services.call("sqs", "ListQueues", QueueNamePrefix="shop")).get("QueueUrls")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            'Resource handler returned message: "It is wrong. (Service: Sqs, ID: 1)" (RequestToken: 2)',
            "It is wrong.",
        ),
        ("Resource creation cancelled", "Resource creation cancelled"),
    ],
)
def test_a_reason_is_what_the_service_said(reason: str, words: str) -> None:
    assert own_words(reason) == words
