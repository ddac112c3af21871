"""Records that are stored as documents are given back as they were, also by what an older release wrote."""

import json
from typing import Final

import pytest

from redrive.model.attempt import Reason
from redrive.model.circuit import OpenCircuit
from redrive.model.document import Document
from redrive.model.names import ResourceName
from redrive.model.task import MoveTask, Replay, ReplayState, TaskState
from redrive.model.topic import Subscription, Topic

_NAME: Final = ResourceName("123456789012", "us-east-1", "orders")
_RECORDS: Final[list[Document]] = [
    Topic(1, _NAME, "sns", tags={"stage": "test"}),
    Subscription("s", _NAME, 2, "1", "https", "https://a.test/", dead_letter=_NAME),
    Subscription("s", _NAME, 2, "1", "https", "https://a.test/"),
    Replay("r", _NAME, "s", 2, 1000, None, state=ReplayState.RUNNING),
    MoveTask("t", _NAME, None, None, 10, 500, last_seq=9, state=TaskState.CANCELLED),
    OpenCircuit(Reason.TIMED_OUT, 0, 1000, 2000, 3, endpoint="https://a.test/"),
]


@pytest.mark.parametrize("record", _RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_is_read_back_from_json_as_it_was(record: Document) -> None:
    written = json.loads(json.dumps(record.to_document()))
    assert type(record).from_document(written) == record


def test_a_field_that_an_older_release_did_not_write_has_its_default() -> None:
    document = Topic(1, _NAME, "sns").to_document()
    del document["archive_ms"]
    assert Topic.from_document(document).archive_ms == 0
