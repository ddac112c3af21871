"""Queue attributes: SQS's strings on one side, a queue's fields on the other.

Ranges and defaults are those of the CreateQueue page of the SQS API reference. What the engine acts on are fields
of `Queue`; what only this facade acts on (policies, keys, quotas) stays in `Queue.attributes` as SQS spells it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import orjson

from redrive.access.patterns import PolicyInvalid
from redrive.aws.encryption.encryption import SQS_SSE
from redrive.aws.encryption.sealer import KEY, KEY_REUSE
from redrive.aws.kit.attributes import (
    BOOLEAN,
    AttributeTable,
    ResourceAttribute,
    ValueReader,
    choice,
    mapped,
    whole_number,
    with_text,
)
from redrive.aws.kit.json_cursor import read_object
from redrive.aws.sqs import names, policies
from redrive.aws.sqs.errors import error, invalid
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import Counts
from redrive.model.names import ResourceName
from redrive.model.queue import DeadLetterTarget, Queue

V = TypeVar("V")

ATTEMPTS_MAX: Final = 1000
SOURCES_MAX: Final = 10
COUNTED: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)

_FIFO: Final = "FifoQueue"
_KEY_REUSE_DEFAULT: Final = "300"
_REDRIVE: Final = "RedrivePolicy"
_REDRIVE_ALLOW: Final = "RedriveAllowPolicy"
_PERMISSIONS: Final = ("allowAll", "denyAll", "byQueue")


def new_queue(name: ResourceName, attributes: Mapping[str, str], tags: Mapping[str, str]) -> Queue:
    """The queue that CreateQueue asks for, not stored yet; raises AwsError if a name or attribute is refused."""
    fifo = False
    if _FIFO in attributes:
        fifo = _read(_FIFO, BOOLEAN, attributes[_FIFO])
        if not fifo:
            raise _unknown_attribute(_FIFO)  # as SQS answers to "false"
    names.check_name(name.name, fifo=fifo)
    others = {key: value for key, value in attributes.items() if key != _FIFO}
    return with_changes(Queue(0, name, ordered=fifo, tags=dict(tags)), others)


def with_changes(queue: Queue, attributes: Mapping[str, str]) -> Queue:
    """The queue with other values of these attributes.

    Raises:
        AwsError: An attribute is unknown, of the other kind of queue, or out of its range; nothing changes.
    """
    _check_encryption(attributes)
    for name, value in attributes.items():
        queue = TABLE.with_value(queue, name, value)
    return queue


# ---- refusals ------------------------------------------------------------------------------------------------


def _unknown_attribute(name: str) -> AwsError:
    return error("InvalidAttributeName", f"Unknown Attribute {name}.")


def _invalid_value(name: str, *_: str) -> AwsError:
    return error("InvalidAttributeValue", f"Invalid value for the parameter {name}.")


def _only_fifo(name: str) -> AwsError:
    return error("InvalidAttributeName", f"You can specify the {name} only when FifoQueue is set to true.")


def _read(name: str, reader: ValueReader[V], value: str) -> V:
    read = reader.parse(value)
    if read is None:
        raise _invalid_value(name)
    return read


# ---- attributes that are more than a value -------------------------------------------------------------------


def _change_fifo(queue: Queue, value: str) -> Queue:
    if _read(_FIFO, BOOLEAN, value):
        return queue
    raise error(
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
    )


def _valid_policy(value: str) -> str | None:
    """The text of a policy; None if it is not valid."""
    try:
        policies.read(value)
    except PolicyInvalid:
        return None
    return value


def _read_object(name: str, value: str) -> dict[str, Any]:
    document = read_object(value)
    if document is None:
        raise invalid(name, value, f"{name} is not valid JSON.")
    return document


def _change_redrive(queue: Queue, value: str) -> Queue:
    if not value:
        return replace(queue, dead_letter=None)
    invalid_policy = partial(invalid, _REDRIVE, value)
    document = _read_object(_REDRIVE, value)
    for name in ("deadLetterTargetArn", "maxReceiveCount"):
        if document.get(name) is None:
            raise invalid_policy(f"Redrive policy does not contain mandatory attribute: {name}.")
    arn = document["deadLetterTargetArn"]
    target = names.name_in_arn(arn) if isinstance(arn, str) else None
    if target is None:
        raise invalid_policy("Invalid value for deadLetterTargetArn.")
    if (target.account, target.region) != (queue.name.account, queue.name.region):
        raise invalid_policy("Dead-letter target owner should be same as the source, and in its region.")
    return replace(
        queue, dead_letter=DeadLetterTarget(target, _attempts_max(value, document["maxReceiveCount"]))
    )


def _attempts_max(policy: str, count: object) -> int:
    text = count if isinstance(count, str) else orjson.dumps(count).decode()
    attempts_max = whole_number(1, ATTEMPTS_MAX).parse(text)
    if attempts_max is None:
        raise invalid(
            _REDRIVE,
            policy,
            f"Invalid value for maxReceiveCount: {text}, valid values are from 1 to {ATTEMPTS_MAX} both inclusive.",
        )
    return attempts_max


def _show_redrive(queue: Queue) -> str | None:
    if queue.dead_letter is None:
        return None
    target = queue.dead_letter
    document = {
        "deadLetterTargetArn": names.arn_of(target.queue),
        "maxReceiveCount": target.attempts_max,
    }
    return orjson.dumps(document).decode()


def _checked_redrive_allow(value: str) -> str:
    invalid_policy = partial(invalid, _REDRIVE_ALLOW, value)
    document = _read_object(_REDRIVE_ALLOW, value)
    permission, sources = document.get("redrivePermission"), document.get("sourceQueueArns")
    if permission not in _PERMISSIONS:
        raise invalid_policy("Invalid value for redrivePermission.")
    if isinstance(sources, list) != (permission == "byQueue"):
        raise invalid_policy("sourceQueueArns is allowed with redrivePermission byQueue only.")
    if isinstance(sources, list) and not (1 <= len(sources) <= SOURCES_MAX and all(map(_is_queue, sources))):
        raise invalid_policy(f"sourceQueueArns holds 1 to {SOURCES_MAX} ARNs of queues.")
    return value


def _is_queue(arn: object) -> bool:
    return isinstance(arn, str) and names.name_in_arn(arn) is not None


def allows_redrive_from(target: Queue, source_arn: str) -> bool:
    """Returns whether a queue agrees to be the dead-letter queue of another, by its RedriveAllowPolicy."""
    text = target.attributes.get(_REDRIVE_ALLOW)
    if text is None:
        return True
    document = orjson.loads(text)
    if document["redrivePermission"] == "byQueue":
        return source_arn in document["sourceQueueArns"]
    return bool(document["redrivePermission"] == "allowAll")


# ---- encryption ------------------------------------------------------------------------------------------------


def _check_encryption(attributes: Mapping[str, str]) -> None:
    if attributes.get(KEY) and attributes.get(SQS_SSE, "").lower() == "true":
        raise error(
            "InvalidAttributeName",
            "You can use one type of server-side encryption (SSE) at one time."
            " You can either enable KMS SSE or SQS SSE.",
        )


def _change_key(queue: Queue, value: str) -> Queue:
    return with_text(with_text(queue, SQS_SSE, "false"), KEY, value or None)


def _change_key_reuse(queue: Queue, value: str) -> Queue:
    _read(KEY_REUSE, whole_number(60, 86_400), value)
    return with_text(queue, KEY_REUSE, None if value == _KEY_REUSE_DEFAULT else value)


def _show_key_reuse(queue: Queue) -> str | None:
    default = _KEY_REUSE_DEFAULT if KEY in queue.attributes else None
    return queue.attributes.get(KEY_REUSE, default)


def _change_sqs_sse(queue: Queue, value: str) -> Queue:
    """Switch encryption by SQS; it takes the place of a key of KMS."""
    enabled = _read(SQS_SSE, BOOLEAN, value)
    if enabled:
        queue = with_text(queue, KEY, None)
    # "true" is kept, too, though it is the default: messages are encrypted only where a caller has set it.
    return with_text(queue, SQS_SSE, "true" if enabled else "false")


# ---- the table -------------------------------------------------------------------------------------------------


def _is_fifo(queue: Queue) -> bool:
    return queue.ordered


def _seconds(name: str, field: str, least: int, most: int) -> ResourceAttribute[Queue]:
    """An attribute in seconds whose field has milliseconds."""
    return ResourceAttribute(
        name, whole_number(least, most, unit=1000), field, write=lambda ms: str(ms // 1000)
    )


TABLE: Final[AttributeTable[Queue]] = AttributeTable(
    (
        _seconds("DelaySeconds", "delay_ms", 0, 900),
        ResourceAttribute("MaximumMessageSize", whole_number(1024, 1_048_576), "body_bytes_max"),
        _seconds("MessageRetentionPeriod", "retention_ms", 60, 1_209_600),
        _seconds("ReceiveMessageWaitTimeSeconds", "wait_ms", 0, 20),
        _seconds("VisibilityTimeout", "lease_ms", 0, 43_200),
        ResourceAttribute(_FIFO, applies=_is_fifo, change=_change_fifo, show=lambda _: "true"),
        ResourceAttribute(
            "ContentBasedDeduplication",
            BOOLEAN,
            "deduplicates_content",
            write=lambda value: str(value).lower(),
            applies=_is_fifo,
        ),
        ResourceAttribute(
            "DeduplicationScope",
            mapped({"queue": False, "messageGroup": True}),
            "deduplicates_per_group",
            write=lambda per_group: "messageGroup" if per_group else "queue",
            applies=_is_fifo,
            inapplicable=_only_fifo,
        ),
        ResourceAttribute(
            "FifoThroughputLimit",
            choice("perQueue", "perMessageGroupId"),
            default="perQueue",
            removable=False,
            applies=_is_fifo,
            inapplicable=_only_fifo,
        ),
        ResourceAttribute("Policy", ValueReader(_valid_policy)),
        ResourceAttribute(_REDRIVE, change=_change_redrive, show=_show_redrive),
        ResourceAttribute(_REDRIVE_ALLOW, ValueReader(_checked_redrive_allow)),
        ResourceAttribute(SQS_SSE, default="true", change=_change_sqs_sse),
        ResourceAttribute(KEY, change=_change_key),
        ResourceAttribute(KEY_REUSE, change=_change_key_reuse, show=_show_key_reuse),
    ),
    unknown=_unknown_attribute,
    refused=_invalid_value,
)

# ---- what callers see ------------------------------------------------------------------------------------------


def attribute_texts(queue: Queue, names_asked_for: Iterable[str], counts: Counts | None) -> dict[str, str]:
    """The attributes that GetQueueAttributes answers.

    Args:
        queue: The queue.
        names_asked_for: Attribute names; `All` stands for every one.
        counts: How many messages there are, where `names_asked_for` needs them.

    Raises:
        AwsError: An attribute is unknown.
    """
    everything = _read_only(queue, counts or Counts(0, 0, 0)) | TABLE.values_of(queue)
    texts: dict[str, str] = {}
    for name in names_asked_for:
        if name == "All":
            return everything
        if name in everything:
            texts[name] = everything[name]
        elif name not in TABLE.names:
            raise _unknown_attribute(name)
    return texts


def needs_counts(names_asked_for: Iterable[str]) -> bool:
    """Returns whether `attribute_texts` needs to know how many messages there are."""
    return any(name == "All" or name in COUNTED for name in names_asked_for)


def _read_only(queue: Queue, counts: Counts) -> dict[str, str]:
    """The attributes of a queue that nobody sets."""
    numbers = (counts.available, counts.claimed, counts.delayed)
    return {
        "QueueArn": names.arn_of(queue.name),
        **{name: str(number) for name, number in zip(COUNTED, numbers, strict=True)},
        "CreatedTimestamp": str(queue.created_at // 1000),
        "LastModifiedTimestamp": str(queue.modified_at // 1000),
    }
