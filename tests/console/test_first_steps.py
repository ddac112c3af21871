"""First steps: whole commands on an empty server, each ticked once it was done, and gone where somebody works."""

import re

from redrive.model.queue import Queue
from redrive.model.topic import Message, Topic
from tests.console.test_schedules import text
from tests.console.world import ROOT, SCOPE, URL, Visitor, visiting


async def test_each_step_of_an_empty_server_ticks_itself_until_the_page_is_left() -> None:
    async with visiting(clock="simulated") as visitor:
        engine = visitor.server.core.engine
        answer = await visitor.get(f"{ROOT}/")
        page = text(answer)
        assert "Welcome to Redrive 0 of 4; each is ticked when it is done" in page
        key = f"AWS_ACCESS_KEY_ID={SCOPE.account} AWS_SECRET_ACCESS_KEY=any"
        assert (
            f"{key} aws --endpoint-url {URL} --region us-east-1 sqs create-queue --queue-name orders" in page
        )
        assert f"--queue-url {URL}/{SCOPE.account}/orders --message-body" in page
        assert f'data-fragment="{ROOT}/?steps=yes"'.encode() in answer.body
        queue = await engine.resources.queues.create(Queue(0, SCOPE._replace(name="orders")))
        assert await done(visitor) == ["Create a queue"]
        await engine.messages.send(queue, [Message(engine.runtime.message_id(), "order")])
        await visitor.server.core.telemetry.flush()
        assert await done(visitor) == ["Create a queue", "Send a message"]
        await engine.resources.topics.create(Topic(0, SCOPE._replace(name="rentals"), "sns"))
        assert await done(visitor) == ["Create a queue", "Send a message", "Create a topic"]
        assert "each is ticked when it is done" not in text(await visitor.get(f"{ROOT}/"))


async def done(visitor: Visitor) -> list[str]:
    """The steps that the page of an empty server shows as done when it asks again."""
    await visitor.post(f"{ROOT}/clock", {})  # past the memo of a second
    page = (await visitor.get(f"{ROOT}/?steps=yes", **{"x-redrive-part": "live"})).body.decode()
    return re.findall(r"Done</span> <b>([^<]+)</b>", page)


async def test_an_account_that_was_chosen_has_no_steps() -> None:
    async with visiting() as visitor:
        assert "each is ticked when it is done" not in text(await visitor.get(f"{ROOT}/?of=111111111111"))
