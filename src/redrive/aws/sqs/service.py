"""Amazon SQS: queues and their messages."""

from collections.abc import Iterable, Sequence
from typing import Final

from redrive.aws.kit.call import Call, ResourceScope
from redrive.aws.kit.service import AwsService
from redrive.aws.sqs import query_names
from redrive.aws.sqs.errors import translated
from redrive.aws.wire.errors import AwsError, ErrorKind
from redrive.aws.wire.profiles import JSON, MIB, QUERY, Profile
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.validation import FlattenedSpelling
from redrive.aws.wire.violations import Violation, ViolationKind
from redrive.engine.engine import Engine

#: Parameters that name an existing queue, on which the queue's own policy decides, too.
_QUEUE_PARAMETERS: Final = frozenset({"QueueUrl", "SourceArn", "TaskHandle"})
_MISSING_PARAMETER: Final = ErrorKind("MissingRequiredParameterException", "MissingParameter")
_EMPTY_BATCH: Final = ErrorKind("EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest")


async def _scopes(_: Engine, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    if operation == "GetQueueUrl" or _QUEUE_PARAMETERS & params.keys():
        return ()  # `QueueAccess` checks once it has read the queue and its policy
    name = params.get("QueueName") or f"{params.get('QueueNamePrefix', '')}*"
    return [ResourceScope(f"arn:aws:sqs:{call.region}:{call.account}:{name}")]


def _missing_parameter(violations: Sequence[Violation]) -> AwsError:
    """Return SQS's answer to the first missing parameter.

    A batch without entries cannot be told from a batch without the parameter in a query request, so both are
    empty batches.
    """
    path = violations[0].path
    if path.endswith("BatchRequestEntry"):
        return _EMPTY_BATCH.says(f"There should be at least one {path} in the request.")
    return _MISSING_PARAMETER.says(f"The request must contain the parameter {path}.")


SERVICE: Final = AwsService(
    profile=Profile(
        name="sqs",
        endpoint_prefix="sqs",
        api_version="2012-11-05",
        protocols=JSON | QUERY,
        target_prefix="AmazonSQS",
        json_namespace="com.amazonaws.sqs",
        xml_namespace="http://queue.amazonaws.com/doc/2012-11-05/",
        xml_declaration='<?xml version="1.0"?>',
        error_detail=True,
        checks=frozenset({ViolationKind.REQUIRED}),  # SQS words every other violation by itself
        spelling=FlattenedSpelling(),
        violated=_missing_parameter,
        errors=query_names.ERRORS,
        amended=query_names.with_query_names,
        answer_names=query_names.ANSWER_NAMES,
        path_member="QueueUrl",
        unknown_action="The action {action} is not valid for this endpoint.",
        hosts=("queue",),
        # A mebibyte of messages, of which escapes in JSON and in forms make three at most, and what is around them.
        body_bytes_max=3 * MIB + MIB // 4,
    ),
    title="Sqs",
    translated=translated,
    scopes=_scopes,
)
