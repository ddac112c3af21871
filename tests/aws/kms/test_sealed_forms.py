"""Beside nodes of an older version messages are sealed as those open them; both forms are received."""

import pytest

from redrive.model.delivery import SEAL_MARK
from redrive.stores.sqlite.store import SqliteStore
from tests.aws.kms.test_key_rights import new_key
from tests.aws.stage import Stage, on_stage


def test_messages_of_both_forms_are_received(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage) -> None:
        attributes = {"KmsMasterKeyId": await new_key(stage)}
        made = await stage.call(stage.root, "sqs", "CreateQueue", QueueName="q", Attributes=attributes)
        url = made["QueueUrl"]
        for body, beside_older_nodes in (("text", True), ("bytes", False)):
            monkeypatch.setattr(SqliteStore, "has_older_nodes", beside_older_nodes)
            await stage.call(stage.root, "sqs", "SendMessage", QueueUrl=url, MessageBody=body)
        (queue,) = await stage.server.core.engine.resources.queues.all_after("", 2)
        text, as_bytes = await stage.server.core.store.peek(queue.id, 2)
        assert text.body > SEAL_MARK
        assert text.sealed is None
        assert as_bytes.body == SEAL_MARK
        assert as_bytes.sealed is not None
        answer = await stage.call(stage.root, "sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
        assert [message["Body"] for message in answer["Messages"]] == ["text", "bytes"]

    on_stage(play)
