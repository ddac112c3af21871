"""Queues and move tasks as documents: what is written is what is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.delivery import Limits
from redrive.model.names import ResourceName, content_deduplication_id, id_text
from redrive.model.queue import DAY_MS, DeadLetterTarget, Queue
from redrive.model.task import MoveTask, TaskState

parts = st.text(st.characters(exclude_characters="/", codec="utf-8"), max_size=20)
names = st.builds(ResourceName, parts, parts, parts)
labels = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
durations = st.integers(0, 14 * DAY_MS)
queues = st.builds(
    Queue,
    id=st.integers(1, 2**63 - 1),
    name=names,
    ordered=st.booleans(),
    delay_ms=durations,
    lease_ms=durations,
    retention_ms=durations,
    wait_ms=durations,
    body_bytes_max=st.integers(1024, 1024 * 1024),
    dead_letter=st.none() | st.builds(DeadLetterTarget, names, st.integers(1, 1000)),
    deduplicates_content=st.booleans(),
    deduplicates_per_group=st.booleans(),
    attributes=labels,
    tags=labels,
    created_at=durations,
    modified_at=durations,
    purged_at=durations,
)
tasks = st.builds(
    MoveTask,
    id=st.text(max_size=10),
    source=names,
    destination=st.none() | names,
    rate_max=st.none() | st.integers(1, 500),
    to_move=durations,
    started_at=durations,
    last_seq=durations,
    moved=durations,
    state=st.sampled_from(TaskState),
    failure=st.none() | st.text(max_size=10),
    lease_until=durations,
    node=st.text(max_size=10),
)


@given(names)
def test_a_name_is_its_key(name: ResourceName) -> None:
    assert ResourceName.from_key(name.key) == name


@given(queues)
def test_a_queue_is_read_as_it_was_written(queue: Queue) -> None:
    assert Queue.from_document(json.loads(json.dumps(queue.to_document()))) == queue


@given(tasks)
def test_a_task_is_read_as_it_was_written(task: MoveTask) -> None:
    assert MoveTask.from_document(json.loads(json.dumps(task.to_document()))) == task


def test_a_queue_without_dead_letters_bounds_no_attempts() -> None:
    queue = Queue(1, ResourceName("1", "here", "q"), retention_ms=7)
    assert queue.limits(dead_letters=False) == Limits(7, 0, dead_letters=False)


@pytest.mark.parametrize("stands", [True, False])
def test_a_queues_limits_say_whether_its_dead_letter_queue_stands(stands: bool) -> None:
    target = DeadLetterTarget(ResourceName("1", "here", "dead"), 3)
    queue = Queue(1, ResourceName("1", "here", "q"), dead_letter=target)
    assert queue.limits(dead_letters=stands) == Limits(4 * DAY_MS, 3, dead_letters=stands)


@pytest.mark.parametrize(
    ("state", "active"),
    [
        (TaskState.RUNNING, True),
        (TaskState.CANCELLING, True),
        (TaskState.CANCELLED, False),
        (TaskState.COMPLETED, False),
        (TaskState.FAILED, False),
    ],
)
def test_a_task_is_active_until_it_ended(state: TaskState, active: bool) -> None:
    assert state.active is active


def test_a_message_id_is_written_as_uuids_are() -> None:
    assert id_text(bytes(range(16))) == "00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_equal_bodies_have_equal_deduplication_ids() -> None:
    assert content_deduplication_id("a") == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert content_deduplication_id("ä") != content_deduplication_id("a")
