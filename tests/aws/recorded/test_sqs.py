"""SQS's recorded answers."""

import pytest

from redrive.model.http import Request
from tests.aws.recorded.test_cloudformation import QUEUE, body, described, stack
from tests.aws.stage import ACCOUNT, HOST, Stage, on_stage, signed


@pytest.mark.parametrize("is_signed", [False, True])
def test_a_queues_url_without_an_action_is_unknown(is_signed: bool) -> None:
    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "sqs", "CreateQueue", QueueName="orders")
        headers = {"host": HOST, "accept": "application/json"}
        request = Request("GET", f"/{ACCOUNT}/orders", "", headers, b"")
        answer = await stage.send(signed(request, "sqs", stage.root) if is_signed else request)
        assert (answer.status, answer.body) == (404, b"<UnknownOperationException/>\n")

    on_stage(play, auth="off")


def test_a_url_without_a_path_names_no_queue() -> None:
    async def play(stage: Stage) -> None:
        url = "http://whatever-incorrect-queue-address"
        refusal = await stage.refusal(stage.root, "sqs", "GetQueueAttributes", QueueUrl=url)
        assert refusal == "AWS.SimpleQueueService.NonExistentQueue: The specified queue does not exist."

    on_stage(play, auth="off")


def test_a_name_is_free_at_once_after_a_stack_deleted_its_queue() -> None:
    async def play(stage: Stage) -> None:
        template = body(Resources={"Orders": {**QUEUE, "Properties": {"QueueName": "orders"}}})
        for _ in range(3):
            shown = await stack(stage, TemplateBody=template)
            assert shown["StackStatus"] == "CREATE_COMPLETE"
            await stage.call(stage.root, "cloudformation", "DeleteStack", StackName="rental")
            assert (await described(stage, shown["StackId"]))["StackStatus"] == "DELETE_COMPLETE"
        url = (await stage.call(stage.root, "sqs", "CreateQueue", QueueName="orders"))["QueueUrl"]
        await stage.call(stage.root, "sqs", "DeleteQueue", QueueUrl=url)
        refusal = await stage.refusal(stage.root, "sqs", "CreateQueue", QueueName="orders")
        assert refusal.startswith("AWS.SimpleQueueService.QueueDeletedRecently: ")

    on_stage(play, auth="off")
