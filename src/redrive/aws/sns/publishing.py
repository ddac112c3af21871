"""Publish and PublishBatch."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.encryption.sealer import KEY
from redrive.aws.kit.call import Call
from redrive.aws.kit.messages import (
    BatchRefusals,
    Entry,
    IdRefusals,
    attributes_bytes,
    check_batch,
    check_ids,
    failed,
    sequence_number,
)
from redrive.aws.sns import dialect
from redrive.aws.sns.devices import payloads
from redrive.aws.sns.devices.platform import endpoint_subscription
from redrive.aws.sns.documents import destinations, message, names
from redrive.aws.sns.documents.direct import new_topic_of, topic_of
from redrive.aws.sns.documents.errors import error, invalid, key_error
from redrive.aws.sns.documents.topic_attributes import DATA_PROTECTION_POLICY
from redrive.aws.sns.documents.topic_policy import topic_at
from redrive.aws.sns.notifications.notification import envelope
from redrive.aws.sns.protection.screening import Screening
from redrive.aws.sns.sms import text_messages
from redrive.aws.sns.sms.telephones import DirectTexts
from redrive.aws.wire.arn import read_arn
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import Enqueued
from redrive.model.errors import KeyUnusable
from redrive.model.names import bytes_of, id_text
from redrive.model.topic import Publication, Subscription, Topic

_ENTRY_ID: Final = "The Id of a batch entry in the batch request"
_TRACE: Final = "x-amzn-trace-id"


class PublishOperations:
    """Publishes to topics, and to one endpoint or telephone alone."""

    def __init__(
        self, engine: Engine, texts: DirectTexts, screening: Screening, encryption: Encryption | None = None
    ) -> None:
        """Publish through this engine.

        Args:
            engine: Where topics are.
            texts: Writes to telephones, where there is no topic.
            screening: Looks at what is published to topics with a data-protection policy.
            encryption: Knows the keys of topics; None: no topic has one.
        """
        self._encryption = encryption
        self._engine = engine
        self._phone = texts.phone
        self._screening = screening

    async def publish(self, call: Call, params: Structure) -> Structure:
        target = await self._target(call, params)
        topic = new_topic_of(target) if isinstance(target, Subscription) else target
        _check_text_and_subject(params)
        texts = _checked_texts(topic, params, _platform_of(target))
        publication = await self._publication(call, topic, params, texts)
        if publication.bytes_published > message.bytes_max(topic):
            raise invalid("Message too long")
        if isinstance(target, Subscription):  # only now: a refused message creates no topic
            topic = await topic_of(self._engine.resources, target)
        if KEY in topic.attributes:
            await self._admit(call, topic)
        (enqueued,) = await self._engine.messages.publish(topic, [publication])
        return _answer(topic, enqueued)

    async def _admit(self, call: Call, topic: Topic) -> None:
        """Refuse a publisher who may not use the topic's key."""
        if self._encryption is None:
            return
        try:
            await self._encryption.admit_publisher(call, topic)
        except KeyUnusable as refused:
            raise key_error(refused, call.id) from refused

    async def _target(self, call: Call, params: Structure) -> Topic | Subscription:
        """The target of a publication: a topic, or the one subscription that stands for an endpoint or a telephone."""
        if arn := params.get("TargetArn"):
            if _is_endpoint(arn):
                return await endpoint_subscription(self._engine.resources.documents, call, arn)
            return await topic_at(call, self._engine.resources.topics, arn, "Publish", "TargetArn")
        if phone := params.get("PhoneNumber"):
            if len(params["Message"]) > message.SMS_CHARS_MAX:
                raise invalid("Message too long")
            return await self._phone(call, phone)
        if "TopicArn" not in params:
            raise invalid("TopicArn or TargetArn Reason: no value for required parameter")
        return await topic_at(call, self._engine.resources.topics, params["TopicArn"], "Publish")

    async def publish_batch(self, call: Call, params: Structure) -> Structure:
        topic = await topic_at(call, self._engine.resources.topics, params["TopicArn"], "Publish")
        entries: Sequence[Entry] = params["PublishBatchRequestEntries"]
        _check_entries(entries, message.bytes_max(topic))
        accepted: list[tuple[Entry, Publication]] = []
        failures: list[Structure] = []
        # Before all else: it refuses the whole batch.
        all_texts = [_checked_texts(topic, entry) for entry in entries]
        for entry, texts in zip(entries, all_texts, strict=True):
            try:
                _check_text_and_subject(entry)
                if KEY in topic.attributes:
                    await self._admit(call, topic)
                publication = await self._publication(call, topic, entry, texts)
            except AwsError as refusal:
                failures.append(failed(entry, refusal))
            else:
                accepted.append((entry, publication))
        publications = [publication for _, publication in accepted]
        enqueued = await self._engine.messages.publish(topic, publications) if publications else []
        successful = [
            {"Id": entry["Id"]} | _answer(topic, result)
            for (entry, _), result in zip(accepted, enqueued, strict=True)
        ]
        return {"Successful": successful, "Failed": failures}

    async def _publication(self, call: Call, topic: Topic, entry: Entry, texts: message.Texts) -> Publication:
        """The publication of an entry; a topic without a policy is not screened."""
        if DATA_PROTECTION_POLICY not in topic.attributes:
            return _new_publication(call, topic, entry, texts, self._engine.runtime.message_id())
        if _bytes_of(entry) > message.bytes_max(topic):
            raise invalid("Message too long")  # neither screened nor audited

        def make(admitted_entry: Entry, message_id: bytes) -> Publication:
            # Screening may have masked the entry's message: its texts are then read anew.
            admitted_texts = (
                texts
                if admitted_entry is entry
                else message.texts(admitted_entry["Message"], admitted_entry.get("MessageStructure"))
            )
            return _new_publication(call, topic, admitted_entry, admitted_texts, message_id)

        return await self._screening.publication(call, topic, entry, make)


def _new_publication(
    call: Call, topic: Topic, entry: Entry, texts: message.Texts, message_id: bytes
) -> Publication:
    text, other_texts = texts
    attributes = message.carry(entry.get("MessageAttributes"))
    headers = envelope(
        id_text(message_id),
        names.arn_of(topic.name),
        call.now,
        topic.attributes.get("SignatureVersion", "1"),
        entry.get("Subject"),
        attributes.packed,
        call.request.headers.get(_TRACE),
    )
    if other_texts:
        headers = dialect.with_platforms(headers, other_texts)
        other_texts = {name: other for name, other in other_texts.items() if _has_own_text(name)}
    return Publication(
        id=message_id,
        body=text,
        bodies=other_texts,
        attributes=attributes.filterable,
        envelope=headers,
        bytes_published=bytes_of(entry["Message"]) + attributes.weight,
        group_id=entry.get("MessageGroupId"),
        deduplication_id=entry.get("MessageDeduplicationId"),
        raw_refusal=dialect.raw_refusal(len(attributes.packed)),
    )


def _has_own_text(name: str) -> bool:
    protocol = destinations.PROTOCOLS.get(name)
    return protocol is not None and protocol.own_text


def _bytes_of(entry: Entry) -> int:
    return bytes_of(entry["Message"]) + attributes_bytes(entry.get("MessageAttributes"))


def _is_endpoint(arn: str) -> bool:
    parsed = read_arn(arn)
    return parsed is not None and parsed.resource.startswith("endpoint/")


def _platform_of(target: Topic | Subscription) -> str | None:
    """The platform that a message is restricted to; None if it is not restricted."""
    if isinstance(target, Topic) or target.protocol != "application":
        return None
    return target.endpoint.split("/")[1]


def _answer(topic: Topic, enqueued: Enqueued) -> Structure:
    answer: Structure = {"MessageId": id_text(enqueued.message_id)}
    if topic.ordered:
        answer["SequenceNumber"] = sequence_number(enqueued.seq)
    return answer


# ---- what is refused ---------------------------------------------------------------------------------------------


def _check_text_and_subject(entry: Entry) -> None:
    """Check an entry for faults that do not keep the other entries of its batch from being published."""
    message.check_text(entry["Message"])
    message.check_subject(entry.get("Subject"))


def _checked_texts(topic: Topic, entry: Entry, platform: str | None = None) -> message.Texts:
    """The texts of an entry, checked for faults that refuse a batch as a whole."""
    if attributes := entry.get("MessageAttributes"):
        message.check_attributes(attributes)
        text_messages.check_attributes(attributes)
    texts = _texts(entry, platform)
    check_ids(topic, entry, _ID_REFUSALS)
    return texts


def _texts(entry: Entry, platform: str | None) -> message.Texts:
    """The text of a message, and those of its own for protocols; raises AwsError."""
    if not entry["Message"]:  # `_check_text_and_subject` refuses it
        return "", {}
    texts = message.texts(entry["Message"], entry.get("MessageStructure"), platform)
    _, others = texts
    if platform in others and (fault := payloads.fault_of(platform, others[platform])):
        raise invalid(f"Message Reason: Invalid notification for protocol {platform}: {fault}")
    return texts


def _malformed_id(parameter: str, _: str) -> AwsError:
    return invalid(  # chosen
        f"{parameter} Reason: can only include alphanumeric and punctuation characters. 1 to 128 in length"
    )


def _unordered(_: str) -> AwsError:
    return invalid(
        "MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid"
        " for this topic type"
    )


_ID_REFUSALS: Final = IdRefusals(
    malformed=_malformed_id,
    without_group=partial(invalid, "The MessageGroupId parameter is required for FIFO topics"),
    unordered=_unordered,
    without_deduplication=partial(
        invalid,
        "The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided"
        " explicitly",
    ),
)


def _check_entries(entries: Sequence[Entry], bytes_max: int) -> None:
    """Check a batch as a whole: its ids, the number of its entries and its size."""
    check_batch(entries, _BATCH_REFUSALS)
    if sum(map(_bytes_of, entries)) > bytes_max:
        raise error(
            "BatchRequestTooLong", "The length of all the messages put together is more than the limit."
        )


def _too_long(_: int) -> AwsError:
    return error("TooManyEntriesInBatchRequest", "The batch request contains more entries than permissible.")


def _bad_id(entry_id: str) -> AwsError:
    return error("InvalidBatchEntryId", f"{_ENTRY_ID} contains an impermissible character: {entry_id}")


def _long_id(entry_id: str) -> AwsError:
    return error("InvalidBatchEntryId", f"{_ENTRY_ID} is too long: {entry_id}")


def _repeated_id(_: str) -> AwsError:
    return error("BatchEntryIdsNotDistinct", "Two or more batch entries in the request have the same Id.")


_BATCH_REFUSALS: Final = BatchRefusals(
    empty=partial(error, "EmptyBatchRequest", "The batch request doesn't contain any entries."),
    too_long=_too_long,
    bad_id=_bad_id,
    long_id=_long_id,
    repeated_id=_repeated_id,
)
