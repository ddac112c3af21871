"""Message move tasks: dead letters on their way back."""

from base64 import b64decode, b64encode
from typing import Any, Final

import orjson

from redrive.aws.kit.call import Call
from redrive.aws.sqs import access, names
from redrive.aws.sqs.errors import error, invalid
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.operations import RATE_MAX
from redrive.model.errors import NotFound, Refused
from redrive.model.queue import Queue
from redrive.model.task import MoveTask, TaskState

TASKS_PER_ACCOUNT_MAX = 100
LISTED_MAX = 10
_FAILURES = {
    "source": "AWS.SimpleQueueService.NonExistentQueue",
    "destination": "AWS.SimpleQueueService.NonExistentQueue",
}

#: What a task does at its source, besides being started ("Configuring queue permissions for dead-letter queue redrive",
#: developer guide): without the right to receive nobody gets messages by way of another queue.
_AT_SOURCE: Final = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
_SEND: Final = "SendMessage"

# SQS knows no task that waits to begin, or is paused: both may still move something, and be cancelled.
_RUNNING = (TaskState.RUNNING, TaskState.WAITING, TaskState.PAUSED)


class Tasks:
    """Starts, cancels and lists move tasks."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def start_message_move_task(self, call: Call, params: Structure) -> Structure:
        source = await self._queue_of_arn(call, "SourceArn", params["SourceArn"], "StartMessageMoveTask")
        if not await self._engine.resources.queues.sources_of(source.name):
            raise error(
                "InvalidParameterValueException", "Source queue must be configured as a Dead Letter Queue."
            )
        for action in _AT_SOURCE:
            access.check(call, source, action)
        destination = None
        if arn := params.get("DestinationArn"):
            destination = await self._queue_of_arn(call, "DestinationArn", arn, _SEND)
            _check_pair(source, destination)
        else:
            await self._check_origins(call, source)
        rate = params.get("MaxNumberOfMessagesPerSecond")
        if rate is not None and not 1 <= rate <= RATE_MAX:
            raise invalid(
                "MaxNumberOfMessagesPerSecond", rate, f"Must be between 1 and {RATE_MAX}, if provided."
            )
        if await self._engine.operations.redrives.active_tasks(call.account) >= TASKS_PER_ACCOUNT_MAX:
            raise error("OverLimit", f"{TASKS_PER_ACCOUNT_MAX} message move tasks are running.")
        task = await self._engine.operations.redrives.start(source, destination, rate)
        return {"TaskHandle": _handle(task)}

    async def cancel_message_move_task(self, call: Call, params: Structure) -> Structure:
        task_id, arn = _read_handle(params["TaskHandle"])
        source = await self._queue_of_arn(call, "SourceArn", arn, "CancelMessageMoveTask")
        try:
            task = await self._engine.operations.redrives.cancel(source.name, task_id)
        except NotFound:
            raise error("ResourceNotFoundException", "Task does not exist.") from None
        except Refused:
            raise error("UnsupportedOperation", "Task is not running.") from None
        return {"ApproximateNumberOfMessagesMoved": task.moved_shown}

    async def list_message_move_tasks(self, call: Call, params: Structure) -> Structure:
        limit = params.get("MaxResults")
        limit = 1 if limit is None else limit
        if not 1 <= limit <= LISTED_MAX:
            raise invalid("MaxResults", limit, f"Must be between 1 and {LISTED_MAX}, if provided.")
        source = await self._queue_of_arn(call, "SourceArn", params["SourceArn"], "ListMessageMoveTasks")
        tasks = await self._engine.operations.redrives.tasks_of(source.name)
        return {"Results": [_as_structure(task) for task in tasks[:limit]]}

    async def _check_origins(self, call: Call, source: Queue) -> None:
        """Refuse to send messages back to a queue that the caller may not send to; raises AwsError (`AccessDenied`)."""
        for origin in await self._engine.operations.redrives.origins_of(source.name):
            if isinstance(origin, Queue):
                access.check(call, origin, _SEND)

    async def _queue_of_arn(self, call: Call, parameter: str, arn: str, action: str) -> Queue:
        name = names.name_in_arn(arn)
        if name is None:
            raise error(
                "InvalidParameterValueException",
                f"You must use this format to specify the {parameter}:"
                " arn:<partition>:<service>:<region>:<account-id>:<resource-id>",
            )
        queue = await self._engine.resources.queues.get(name) if name.region == call.region else None
        if queue is None:
            raise error(
                "ResourceNotFoundException",
                f"The resource that you specified for the {parameter} parameter doesn't exist.",
            )
        access.check(call, queue, action)
        return queue


def _check_pair(source: Queue, destination: Queue) -> None:
    if source.name == destination.name:
        raise error("InvalidParameterValueException", "Source queue and destination queue must be different.")
    if source.ordered != destination.ordered:
        raise error(
            "InvalidParameterValueException",
            "The source queue and destination queue must be of the same queue type.",
        )


# ---- handles ---------------------------------------------------------------------------------------------------


def _handle(task: MoveTask) -> str:
    return b64encode(orjson.dumps({"taskId": task.id, "sourceArn": names.arn_of(task.source)})).decode()


def _read_handle(text: str) -> tuple[str, str]:
    """The task's id and its source's ARN, from a handle; raises AwsError."""
    try:
        document = orjson.loads(b64decode(text, validate=True))
        task_id, arn = document["taskId"], document["sourceArn"]
    except (ValueError, TypeError, KeyError):
        raise error("InvalidParameterValueException", "Value for parameter TaskHandle is invalid.") from None
    if not (isinstance(task_id, str) and isinstance(arn, str)):
        raise error("InvalidParameterValueException", "Value for parameter TaskHandle is invalid.")
    return task_id, arn


def _as_structure(task: MoveTask) -> dict[str, Any]:
    members: dict[str, Any] = {
        "Status": (TaskState.RUNNING if task.state in _RUNNING else task.state).upper(),
        "SourceArn": names.arn_of(task.source),
        "ApproximateNumberOfMessagesMoved": task.moved_shown,
        "ApproximateNumberOfMessagesToMove": task.to_move,
        "StartedTimestamp": task.started_at,
    }
    if task.state in _RUNNING:
        members["TaskHandle"] = _handle(task)
    if task.destination is not None:
        members["DestinationArn"] = names.arn_of(task.destination)
    if task.rate_max is not None:
        members["MaxNumberOfMessagesPerSecond"] = task.rate_max
    if task.failure is not None:
        members["FailureReason"] = _FAILURES.get(task.failure, task.failure)
    return members
