"""Links from ARNs, and from the resources of stacks, to pages."""

from typing import Any

import pytest

from redrive.console import links
from redrive.console.session import ConsoleSession
from redrive.console.visit import Visit

SCOPE = "111111111111/eu-west-1"


def visit(**changed: Any) -> Visit:
    session = ConsoleSession("", "111111111111", writes=False)
    values: dict[str, Any] = dict.fromkeys(Visit.__dataclass_fields__)
    account, _, region = SCOPE.partition("/")
    values |= {"session": session, "base": "/c", "args": {"account": account, "region": region}, **changed}
    return Visit(**values)


@pytest.mark.parametrize(
    ("resource", "name", "link"),
    [
        ("sqs:eu-west-1:111111111111:orders", "orders", f"/c/{SCOPE}/queues/orders"),
        ("sns:eu-west-1:111111111111:news", "news", f"/c/{SCOPE}/topics/news"),
        ("sns:eu-west-1:111111111111:news:6f1c", "news:6f1c", f"/c/{SCOPE}/topics/news/6f1c"),
        ("lambda:eu-west-1:111111111111:function:bill:2", "bill:2", f"/c/{SCOPE}/functions/bill"),
        ("logs:eu-west-1:111111111111:log-group:a/b:*", "a/b", f"/c/{SCOPE}/logs/group?name=a%2Fb"),
        ("cloudwatch:eu-west-1:111111111111:alarm:a:b", "a:b", f"/c/{SCOPE}/alarms/alarm?name=a%3Ab"),
        ("kms:eu-west-1:111111111111:key/1-2", "1-2", f"/c/{SCOPE}/kms/1-2"),
        ("cloudformation:eu-west-1:111111111111:stack/shop/1", "shop", f"/c/{SCOPE}/stacks/shop"),
        ("sqs:eu-west-1:222222222222:others", "others", ""),
        ("s3:::bucket", "bucket", ""),
        ("firehose:eu-west-1:111111111111:deliverystream/x", "deliverystream/x", ""),
    ],
)
def test_an_arn_leads_to_the_page_of_what_it_names(resource: str, name: str, link: str) -> None:
    found = links.target(visit(), f"arn:aws:{resource}")
    assert (found.name, found.link) == (name, link)


def test_a_dead_letter_queue_leads_to_its_workbench_and_nothing_else_does() -> None:
    dead = links.dead_letters(visit(), "arn:aws:sqs:eu-west-1:111111111111:dead")
    assert dead == f"/c/{SCOPE}/dead-letters/dead"
    assert links.dead_letters(visit(), "arn:aws:sns:eu-west-1:111111111111:news") == ""
    assert links.target(visit(), "no arn").link == ""


@pytest.mark.parametrize(
    ("type_", "physical", "name", "link"),
    [
        ("AWS::SQS::Queue", "http://h/111111111111/q", "q", f"/c/{SCOPE}/queues/q"),
        ("AWS::Lambda::Function", "f", "f", f"/c/{SCOPE}/functions/f"),
        ("AWS::Logs::LogGroup", "a/b", "a/b", f"/c/{SCOPE}/logs/group?name=a%2Fb"),
        ("AWS::CloudWatch::Alarm", "a", "a", f"/c/{SCOPE}/alarms/alarm?name=a"),
        ("AWS::SNS::Topic", "arn:aws:sns:eu-west-1:111111111111:t", "t", f"/c/{SCOPE}/topics/t"),
        ("AWS::S3::Bucket", "b", "b", ""),
        ("AWS::SQS::Queue", "", "", ""),
    ],
)
def test_a_stacks_resource_leads_to_its_page(type_: str, physical: str, name: str, link: str) -> None:
    found = links.of_resource(visit(), type_, physical)
    assert (found.name, found.link, found.service) == (name, link, "")
