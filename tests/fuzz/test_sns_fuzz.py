"""Whatever is asked of SNS is answered below 500, and what is refused changed nothing."""

import asyncio
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.sns_requests import RIGHT, Sent, requests
from tests.fuzz.sns_world import CLIENT, STANDARD, SnsWorld
from tests.fuzz.spoiling import HALF
from tests.fuzz.watched import Worlds

_READS = (
    ("ListTopics", {}),
    ("ListSubscriptions", {}),
    ("ListSubscriptionsByTopic", {"TopicArn": STANDARD}),
    ("ListPlatformApplications", {}),
    ("ListSMSSandboxPhoneNumbers", {}),
    ("GetSMSAttributes", {}),
    ("Publish", {"TopicArn": STANDARD, "Message": '{"store":"a"}'}),
)


async def assert_readable(world: SnsWorld, all_sent: list[Sent]) -> None:
    """Nothing accepted stands in the way of others: topics and subscriptions are shown, and are published to."""
    asked = list(_READS)
    listed = CLIENT.answer("ListTopics", await world.answer(CLIENT.request("ListTopics", {})))
    asked += [("GetTopicAttributes", {"TopicArn": one["TopicArn"]}) for one in listed["Topics"]]
    subscribed = CLIENT.answer(
        "ListSubscriptions", await world.answer(CLIENT.request("ListSubscriptions", {}))
    )
    asked += [
        ("GetSubscriptionAttributes", {"SubscriptionArn": one["SubscriptionArn"]})
        for one in subscribed["Subscriptions"]
        if one["SubscriptionArn"].startswith("arn:")
    ]
    for operation, params in asked:
        response = await world.answer(CLIENT.request(operation, params))
        assert response.status in (200, 404), (operation, params, response.body, all_sent)
    assert not world.complaints.heard, (all_sent, world.complaints.heard)


async def tell(all_sent: list[Sent]) -> None:
    """Ask one after the other, of a world of their own."""
    world = SnsWorld()
    await world.open()
    try:
        for one in all_sent:
            before = world.everything()
            response = await world.answer(one.request(world.known))
            assert response.status < 500, (one, response.body)
            assert not world.complaints.heard, (one, world.complaints.heard)
            ET.fromstring(response.body)
            if response.status >= 400:
                assert world.everything() == before, (one, response.body)
        await assert_readable(world, all_sent)
    finally:
        await world.close()


@HALF
@given(st.lists(requests(), min_size=1, max_size=8))
def test_a_refusal_changes_nothing_and_nothing_fails(all_sent: list[Sent]) -> None:
    asyncio.run(tell(all_sent))


def test_every_operation_is_asked() -> None:
    assert len({operation for operation, _ in RIGHT}) == 42


def test_the_unmodified_requests_are_accepted() -> None:
    """The oddities begin with requests that are accepted; otherwise they would all end at the first check."""

    async def ask_all() -> list[tuple[str, bytes]]:
        refused, worlds = [], Worlds(SnsWorld)
        for operation, params in RIGHT:
            world = await worlds.next()
            sent = Sent(operation, CLIENT.request(operation, dict(params)).body)
            response = await world.answer(sent.request(world.known))
            if response.status != 200:
                refused.append((operation, response.body))
        await worlds.close()
        return refused

    refused = asyncio.run(ask_all())
    assert [operation for operation, _ in refused] == ["VerifySMSSandboxPhoneNumber"], refused
