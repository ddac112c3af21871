import pytest

from tests.contracts.aws.sqs.client import Queue, Sqs, new_name, refused


def tags_of(queue: Queue) -> dict[str, str]:
    tags: dict[str, str] = queue.call("list_queue_tags").get("Tags", {})
    return tags


def test_tags_are_added_replaced_and_taken_away(sqs: Sqs) -> None:
    queue = sqs.create(new_name(), tags={"a": "1", "b": "2"})
    assert tags_of(queue) == {"a": "1", "b": "2"}
    queue.call("tag_queue", Tags={"b": "3", "c": ""})
    assert tags_of(queue) == {"a": "1", "b": "3", "c": ""}
    queue.call("untag_queue", TagKeys=["a", "never"])
    assert tags_of(queue) == {"b": "3", "c": ""}


def test_a_queue_without_tags_answers_without_tags(sqs: Sqs) -> None:
    assert "Tags" not in sqs.queue().call("list_queue_tags")


def test_tags_may_say_anything(sqs: Sqs) -> None:
    tags = {"K" * 128: "V" * 256, "é/=+@ :._-": "<&>\U0001f600"}
    queue = sqs.queue()
    queue.call("tag_queue", Tags=tags)
    assert tags_of(queue) == tags


def test_a_queue_has_at_most_50_tags(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.call("tag_queue", Tags={f"k{number}": "" for number in range(50)})
    with refused("InvalidParameterValue", "Too many tags added for queue. Maximum is 50."):
        queue.call("tag_queue", Tags={"one more": ""})
    queue.call("tag_queue", Tags={"k7": "changed"})
    assert len(tags_of(queue)) == 50


@pytest.mark.parametrize("tags", [{"k" * 129: ""}, {"k": "v" * 257}, {"aws:mine": ""}, {"AWS:mine": ""}])
def test_malformed_tags_are_refused(sqs: Sqs, tags: dict[str, str]) -> None:
    queue = sqs.queue()
    with refused("InvalidParameterValue"):
        queue.call("tag_queue", Tags=tags)
    assert tags_of(queue) == {}


def test_tagging_without_tags_is_refused(sqs: Sqs) -> None:
    with refused("MissingParameter"):
        sqs.queue().call("tag_queue")
    with refused("MissingParameter"):
        sqs.queue().call("tag_queue", Tags={})


def test_tags_do_not_tell_queues_apart(sqs: Sqs) -> None:
    queue = sqs.create(new_name(), tags={"a": "1"})
    assert sqs.create(queue.name, tags={"a": "2"}).url == queue.url
    assert tags_of(queue) == {"a": "1"}
