"""Queues made from the console, and dead-letter queues for what loses its failures."""

from urllib.parse import unquote

from tests.console.services import Services
from tests.console.test_needs import badges, lose
from tests.console.test_overview import overview
from tests.console.test_schedules import text
from tests.console.world import ROOM, SCOPE, make_world, visiting

FORM = f"{ROOM}/dead-letter-queue"
ID = "6f1c2a90-4b7e-4d0a-8a55-000000000001"
OF_RENTALS = {"topic": "Rentals", "subscription": ID}


async def test_a_queue_is_created_with_one_for_its_dead_letters() -> None:
    async with visiting() as visitor:
        assert f'href="{ROOM}/new-queue"' in (await visitor.get(f"{ROOM}/queues")).body.decode()
        form = {"name": "bills", "fifo": "yes", "keeps": "yes", "receives": "3"}
        led = await visitor.post(f"{ROOM}/new-queue", form)
        assert led.headers["Location"] == f"{ROOM}/queues/bills.fifo"
        assert "bills.fifo is created, with bills-dead.fifo" in unquote(led.headers["Set-Cookie"])
        page = text(await visitor.get(f"{ROOM}/queues/bills.fifo"))
        assert "to bills-dead.fifo after 3 receives" in page
        again = await visitor.post(f"{ROOM}/new-queue", form)
        assert again.status == 400
        assert "There is a queue bills.fifo already." in text(again)
        refused = await visitor.post(f"{ROOM}/new-queue", {"name": "no spaces"})
        assert refused.status == 400
        assert 'value="no spaces"' in refused.body.decode()


async def test_a_loss_ends_with_a_form_that_its_row_leads_to_and_undo_takes_it_back() -> None:
    async with visiting(clock="simulated") as visitor:
        await lose(visitor, 2, ID)
        link = f"{FORM}?topic=Rentals&amp;subscription={ID}"
        assert f'href="{link}" aria-label="Add dead-letter queue…: 2 messages' in await overview(visitor)
        assert link in (await visitor.get(f"{ROOM}/topics/Rentals/{ID}")).body.decode()
        page = text(await visitor.get(link.replace("&amp;", "&")))
        assert "is lost today" in page
        assert (
            f"set-subscription-attributes --subscription-arn arn:aws:sns:us-east-1:000000000000:Rentals:{ID}"
            in page
        )
        led = await visitor.post(FORM, {**OF_RENTALS, "dead": "Rentals-dead"})
        cookie = unquote(led.headers["Set-Cookie"])
        assert led.headers["Location"] == f"{ROOM}/topics/Rentals/{ID}"
        assert "Failed messages are kept in Rentals-dead, which is new," in cookie
        row = await overview(visitor)
        assert badges(row) == ["Lost"]
        assert "dead letters go to Rentals-dead now" in row
        services = Services(visitor)
        topic = f"arn:aws:sns:{SCOPE.region}:{SCOPE.account}:Rentals"
        await services.call("sns", "Publish", TopicArn=topic, Message="kept")
        time = visitor.server.time
        assert time is not None
        await time.advance(6_000)
        assert "1 waiting" in text(await visitor.get(f"{ROOM}/dead-letters/Rentals-dead"))
        await visitor.post(FORM, {**OF_RENTALS, "do": "remove"})
        assert "none: failures are lost" in text(await visitor.get(f"{ROOM}/topics/Rentals/{ID}"))


async def test_a_queue_gets_a_dead_letter_queue_that_is_there_or_is_created() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        services = Services(visitor)
        await services.call("sqs", "CreateQueue", QueueName="bare")
        page = (await visitor.get(f"{ROOM}/queues/bare")).body.decode()
        assert f'href="{FORM}?queue=bare">Add a dead-letter queue…</a>' in page
        assert 'value="bare-dead"' in (await visitor.get(f"{FORM}?queue=bare")).body.decode()
        await visitor.post(FORM, {"queue": "bare", "dead": world.dead.name.name, "receives": "7"})
        assert f"to {world.dead.name.name} after 7 receives" in text(await visitor.get(f"{ROOM}/queues/bare"))
        again = (await visitor.get(f"{FORM}?queue=bare&again")).body.decode()
        assert f'value="{world.dead.name.name}"' in again
        assert 'name="receives" value="7"' in again
        refused = await visitor.post(FORM, {"queue": "bare", "dead": "bare-dead", "receives": "1001"})
        assert refused.status == 400
        assert (await visitor.get(f"{FORM}?queue=absent")).status == 404
        assert (await visitor.get(FORM)).status == 400


async def test_a_read_only_console_offers_no_dead_letter_queue() -> None:
    async with visiting(clock="simulated", console="read-only") as visitor:
        await lose(visitor, 1, ID)
        assert "dead-letter queue…" not in await overview(visitor)
        page = await visitor.get(f"{FORM}?topic=Rentals&subscription={ID}")
        assert "is read-only" in text(page)
        assert '<form method="post"' not in page.body.decode()
