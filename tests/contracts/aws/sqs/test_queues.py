from typing import Any

import pytest

from tests.contracts.aws.sqs.client import ACCOUNT, Queue, Sqs, new_name, refused
from tests.services.clients import sdk

NO_SUCH_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"
STANDARD_NAME = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
FIFO_NAME = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores,"
    " must end with .fifo suffix and be 1 to 80 in length."
)


def no_such_queue(sqs: Sqs) -> str:
    version = " for this wsdl version" if sqs.protocol == "query" else ""
    return f"The specified queue does not exist{version}."


def test_a_url_is_the_host_the_client_used_the_account_and_the_name(sqs: Sqs) -> None:
    name = new_name()
    assert sqs.create(name).url == f"{sqs.server.url}/{ACCOUNT}/{name}"
    assert sqs.client.get_queue_url(QueueName=name)["QueueUrl"] == f"{sqs.server.url}/{ACCOUNT}/{name}"


def test_a_client_that_calls_the_server_by_another_name_gets_that_name(sqs: Sqs) -> None:
    by_name = sqs.server.url.replace("127.0.0.1", "localhost")
    queue = sqs.queue()
    assert sdk(by_name, sqs.protocol).get_queue_url(QueueName=queue.name)["QueueUrl"] == (
        f"{by_name}/{ACCOUNT}/{queue.name}"
    )


@pytest.mark.parametrize("base", ["http://elsewhere:9", "https://sqs.us-east-1.amazonaws.com", ""])
def test_a_queue_is_found_by_a_url_of_any_host(sqs: Sqs, base: str) -> None:
    queue = sqs.queue()
    queue.send("found")
    assert Queue(sqs, f"{base}/{ACCOUNT}/{queue.name}").bodies() == ["found"]


@pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 80])
def test_names_of_standard_queues(sqs: Sqs, name: str) -> None:
    assert sqs.elsewhere(account="100000000001").create(name).name == name


@pytest.mark.parametrize("name", ["", "x" * 81, "a b", "a.b", "a.fifo", "ä", "a/b", "a\n"])
def test_names_no_standard_queue_may_have(sqs: Sqs, name: str) -> None:
    with refused("InvalidParameterValue", STANDARD_NAME):
        sqs.create(name)


@pytest.mark.parametrize("name", ["a.fifo", "x" * 75 + ".fifo"])
def test_names_of_fifo_queues(sqs: Sqs, name: str) -> None:
    assert sqs.elsewhere(account="100000000001").create(name, {"FifoQueue": "true"}).name == name


@pytest.mark.parametrize("name", ["a", ".fifo", "x" * 76 + ".fifo", "a b.fifo", "a.b.fifo", "a.FIFO"])
def test_names_no_fifo_queue_may_have(sqs: Sqs, name: str) -> None:
    with refused("InvalidParameterValue", FIFO_NAME):
        sqs.create(name, {"FifoQueue": "true"})


def test_a_queue_that_is_created_again_as_it_is_stays(sqs: Sqs) -> None:
    queue = sqs.create(new_name(), {"DelaySeconds": "0", "VisibilityTimeout": "7"})
    queue.send("stays")
    assert sqs.create(queue.name).url == queue.url
    assert sqs.create(queue.name, {"VisibilityTimeout": "7"}).url == queue.url
    assert sqs.create(queue.name, {"MaximumMessageSize": "1048576", "DelaySeconds": "0"}).url == queue.url
    assert queue.bodies() == ["stays"]


@pytest.mark.parametrize(
    ("first", "then", "named"),
    [
        ({}, {"DelaySeconds": "1"}, "DelaySeconds"),
        ({"DelaySeconds": "1"}, {"DelaySeconds": "2"}, "DelaySeconds"),
        ({"VisibilityTimeout": "7"}, {"DelaySeconds": "0", "VisibilityTimeout": "30"}, "VisibilityTimeout"),
        ({}, {"KmsMasterKeyId": "alias/aws/sqs"}, "KmsMasterKeyId"),
    ],
)
def test_a_queue_is_not_created_again_otherwise(
    sqs: Sqs, first: dict[str, str], then: dict[str, str], named: str
) -> None:
    queue = sqs.queue(**first)
    before = queue.attributes()
    message = f"A queue already exists with the same name and a different value for attribute {named}"
    with refused("QueueAlreadyExists", message):
        sqs.create(queue.name, then)
    assert queue.attributes() == before


def test_a_name_is_free_again_60_seconds_after_its_queue_was_deleted(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("gone")
    queue.call("delete_queue")
    sqs.server.advance(59.999)
    too_early = (
        "You must wait 60 seconds after deleting a queue before you can create another with the same name."
    )
    with refused("AWS.SimpleQueueService.QueueDeletedRecently", too_early):
        sqs.create(queue.name)
    sqs.server.advance(0.001)
    assert sqs.create(queue.name).bodies() == []


def test_a_deleted_queue_is_not_found_at_once(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.call("delete_queue")
    with refused(NO_SUCH_QUEUE, no_such_queue(sqs)):
        queue.send()
    with refused(NO_SUCH_QUEUE, no_such_queue(sqs)):
        sqs.client.get_queue_url(QueueName=queue.name)
    with refused(NO_SUCH_QUEUE, no_such_queue(sqs)):
        queue.call("delete_queue")
    assert queue.url not in sqs.urls(QueueNamePrefix=queue.name)


QUEUE_CALLS: dict[str, dict[str, Any]] = {
    "add_permission": {"Label": "l", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"]},
    "change_message_visibility": {"ReceiptHandle": "h", "VisibilityTimeout": 0},
    "change_message_visibility_batch": {"Entries": [{"Id": "1", "ReceiptHandle": "h"}]},
    "delete_message": {"ReceiptHandle": "h"},
    "delete_message_batch": {"Entries": [{"Id": "1", "ReceiptHandle": "h"}]},
    "delete_queue": {},
    "get_queue_attributes": {"AttributeNames": ["All"]},
    "list_dead_letter_source_queues": {},
    "list_queue_tags": {},
    "purge_queue": {},
    "receive_message": {},
    "remove_permission": {"Label": "l"},
    "send_message": {"MessageBody": "b"},
    "send_message_batch": {"Entries": [{"Id": "1", "MessageBody": "b"}]},
    "set_queue_attributes": {"Attributes": {"DelaySeconds": "1"}},
    "tag_queue": {"Tags": {"a": "b"}},
    "untag_queue": {"TagKeys": ["a"]},
}


@pytest.mark.parametrize("operation", QUEUE_CALLS)
def test_every_operation_on_a_missing_queue_is_refused(sqs: Sqs, operation: str) -> None:
    with refused(NO_SUCH_QUEUE, no_such_queue(sqs)):
        Queue(sqs, f"{sqs.server.url}/{ACCOUNT}/{new_name()}").call(operation, **QUEUE_CALLS[operation])


@pytest.mark.parametrize("url", ["http://localhost/nonsense", "http://localhost/a/b", "/"])
def test_an_address_that_is_no_queues(sqs: Sqs, url: str) -> None:
    with refused("InvalidAddress", f"The address {url} is not valid for this endpoint.", status=404):
        Queue(sqs, url).send()


def test_accounts_and_regions_have_queues_of_their_own(sqs: Sqs) -> None:
    name = new_name()
    here = sqs.create(name)
    there = sqs.elsewhere(region="eu-central-1").create(name)
    theirs = sqs.elsewhere(account="200000000000").create(name)
    here.send("here")
    there.send("there")
    theirs.send("theirs")
    assert (here.bodies(), there.bodies(), theirs.bodies()) == (["here"], ["there"], ["theirs"])
    assert here.attributes("QueueArn") == {"QueueArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}"}
    assert there.attributes("QueueArn") == {"QueueArn": f"arn:aws:sqs:eu-central-1:{ACCOUNT}:{name}"}


# ---- lists -------------------------------------------------------------------------------------------------------


def _account(sqs: Sqs, account: str) -> Sqs:
    """An account that begins with no queues; tests of both protocols come to the same server."""
    return sqs.elsewhere(account=f"{account}{'1' if sqs.protocol == 'json' else '2'}")


def test_an_account_without_queues_lists_none(sqs: Sqs) -> None:
    assert "QueueUrls" not in _account(sqs, "30000000000").client.list_queues()


def test_queues_are_listed_by_prefix(sqs: Sqs) -> None:
    own = _account(sqs, "30000000001")
    a, ab, b = own.create("a"), own.create("ab"), own.create("b")
    assert own.urls() == [a.url, ab.url, b.url]
    assert own.urls(QueueNamePrefix="a") == [a.url, ab.url]
    assert own.urls(QueueNamePrefix="ab") == [ab.url]
    assert own.urls(QueueNamePrefix="c") == []


def test_a_page_has_a_token_only_where_more_follows(sqs: Sqs) -> None:
    own = _account(sqs, "30000000002")
    urls = [own.create(f"q{number}").url for number in range(5)]
    first = own.client.list_queues(MaxResults=2)
    second = own.client.list_queues(MaxResults=2, NextToken=first["NextToken"])
    third = own.client.list_queues(MaxResults=2, NextToken=second["NextToken"])
    assert [*first["QueueUrls"], *second["QueueUrls"], *third["QueueUrls"]] == urls
    assert "NextToken" not in third
    assert "NextToken" not in own.client.list_queues(MaxResults=5)
    assert "NextToken" not in own.client.list_queues()


def test_pages_keep_to_their_prefix(sqs: Sqs) -> None:
    own = _account(sqs, "30000000003")
    for name in ("a1", "a2", "b1"):
        own.create(name)
    first = own.client.list_queues(MaxResults=1, QueueNamePrefix="a")
    second = own.client.list_queues(MaxResults=1, QueueNamePrefix="a", NextToken=first["NextToken"])
    assert [url[-2:] for url in first["QueueUrls"] + second["QueueUrls"]] == ["a1", "a2"]
    assert "NextToken" not in second


@pytest.mark.parametrize("number", [0, -1, 1001])
def test_pages_hold_1_to_1000(sqs: Sqs, number: int) -> None:
    with refused("InvalidParameterValue"):
        sqs.client.list_queues(MaxResults=number)


def test_a_needed_parameter_is_asked_for_by_name(sqs: Sqs) -> None:
    with refused("MissingParameter", "The request must contain the parameter QueueName."):
        sqs.client.create_queue()
    with refused("MissingParameter", "The request must contain the parameter QueueUrl."):
        sqs.client.send_message(MessageBody="b")
