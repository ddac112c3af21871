"""Delivery streams: made, described, listed, changed and removed; their tags and their keys."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.encryption.encryption import SQS_SSE
from redrive.aws.encryption.sealer import KEY
from redrive.aws.firehose import configuration
from redrive.aws.firehose.delivering import Deliveries
from redrive.aws.firehose.errors import error, invalid, no_such_stream, unassumable, unoffered
from redrive.aws.firehose.records import STREAM, DeliveryStream, buffer_of
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.identities import account_of
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import Tagging
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.errors import NotFound
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue

STREAMS_MAX: Final = 5_000  # of an account's region
DESTINATION: Final = "destinationId-000000000001"
#: How long delivery to S3 is tried; older records are lost, as on Amazon's servers.
KEPT_MS: Final = DAY_MS
_LISTED_DEFAULT: Final = 10
_LISTED_MAX: Final = 10_000
TAGS: Final = Tagging(
    too_many=lambda: error("LimitExceededException", "A delivery stream has at most 50 tags."),
    reserved=lambda _: invalid("Tag keys that begin with aws: are reserved."),
)
_S3_MEMBERS: Final = (
    *("RoleARN", "BucketARN", "Prefix", "ErrorOutputPrefix", "BufferingHints", "CompressionFormat"),
    *("EncryptionConfiguration", "CloudWatchLoggingOptions"),
)
_UPDATES: Final = ("ExtendedS3DestinationUpdate", "S3DestinationUpdate")


class DeliveryStreamOperations:
    """The operations on delivery streams."""

    def __init__(
        self, engine: Engine, calls: InnerCalls, roles: ServiceRoles, deliveries: Deliveries
    ) -> None:
        self._engine = engine
        self._documents = engine.resources.documents
        self._calls = calls
        self._roles = roles
        self._deliveries = deliveries

    async def create_delivery_stream(self, call: Call, params: Structure) -> Structure:
        name = ResourceName(call.account, call.region, params["DeliveryStreamName"])
        if (params.get("DeliveryStreamType") or "DirectPut") != "DirectPut":
            raise unoffered(f"streams of the type {params['DeliveryStreamType']}")
        settings = configuration.of_request(params)
        await self._check_role(call, settings["RoleARN"])
        await _check_key(self._calls, call, _encryption_of(params))
        delivery_stream = DeliveryStream(
            *name,
            call.id,
            call.now,
            settings,
            tags=TAGS.read(params.get("Tags")),
            encryption=_encryption_of(params),
        )
        streams = await self._documents.find(STREAM, name._replace(name="").key, limit=STREAMS_MAX)

        async def decide(draft: Draft) -> None:
            if await draft.get(STREAM, name.key) is not None:
                text = f"Firehose {name.name} under accountId {name.account} already exists"
                raise error("ResourceInUseException", text)
            if len(streams) >= STREAMS_MAX:
                raise error("LimitExceededException", f"An account has at most {STREAMS_MAX} streams.")
            draft.put(STREAM, name.key, delivery_stream)
            await self._engine.resources.queues.create_in(draft, _buffer(delivery_stream))

        await self._engine.resources.write(decide)
        return {"DeliveryStreamARN": delivery_stream.arn}

    async def describe_delivery_stream(self, call: Call, params: Structure) -> Structure:
        stream = await self.existing_stream(call, params)
        after = params.get("ExclusiveStartDestinationId")
        destinations = [] if after == DESTINATION else [_shown_destination(stream)]
        description: dict[str, Any] = {
            "DeliveryStreamName": stream.name,
            "DeliveryStreamARN": stream.arn,
            "DeliveryStreamStatus": "ACTIVE",
            "DeliveryStreamEncryptionConfiguration": _shown_encryption(stream),
            "DeliveryStreamType": "DirectPut",
            "VersionId": str(stream.version),
            "CreateTimestamp": stream.created_at,
            "Destinations": destinations,
            "HasMoreDestinations": False,
        }
        if stream.updated_at:
            description["LastUpdateTimestamp"] = stream.updated_at
        return {"DeliveryStreamDescription": description}

    async def list_delivery_streams(self, call: Call, params: Structure) -> Structure:
        limit = min(params.get("Limit") or _LISTED_DEFAULT, _LISTED_MAX)
        if (params.get("DeliveryStreamType") or "DirectPut") != "DirectPut":
            return {"DeliveryStreamNames": [], "HasMoreDeliveryStreams": False}
        prefix = ResourceName(call.account, call.region)
        start = params.get("ExclusiveStartDeliveryStreamName") or ""
        after = prefix._replace(name=start).key if start else ""
        streams = await self._documents.find(STREAM, prefix.key, after, limit + 1)
        names = [stream.name for stream in streams]
        return {"DeliveryStreamNames": names[:limit], "HasMoreDeliveryStreams": len(names) > limit}

    async def _check_role(self, call: Call, role: str) -> None:
        """Refuse another account's role, whether policies count or not, and one that the caller may not pass."""
        if account_of(role) != call.account:
            raise unassumable(role)
        await self._roles.check(call, role)

    async def update_destination(self, call: Call, params: Structure) -> Structure:
        stream = await self.existing_stream(call, params)
        if params["DestinationId"] != DESTINATION:
            raise invalid(f"Destination Id {params['DestinationId']} not found")

        async def decide(draft: Draft) -> DeliveryStream:
            current = await draft.get(STREAM, stream.resource.key)
            if current is None:
                raise no_such_stream(stream.resource)
            settings = configuration.of_update(params, current.destination)
            if any("RoleARN" in (params.get(name) or {}) for name in _UPDATES):
                await self._check_role(call, settings["RoleARN"])
            if params["CurrentDeliveryStreamVersionId"] != str(current.version):
                text = (
                    f"Cannot update firehose: {current.name} since the current version id: {current.version} and"
                    f" specified version id: {params['CurrentDeliveryStreamVersionId']} do not match"
                )
                raise error("ConcurrentModificationException", text)
            version = current.version + 1
            new_stream = replace(current, destination=settings, version=version, updated_at=call.now)
            draft.put(STREAM, stream.resource.key, new_stream)
            return new_stream

        self._deliveries.reschedule(await self._engine.resources.write(decide))
        return {}

    async def delete_delivery_stream(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/firehose/latest/APIReference/API_DeleteDeliveryStream.html; records go with it."""
        stream = await self.existing_stream(call, params)
        queues = self._engine.resources.queues

        async def decide(draft: Draft) -> None:
            if await draft.get(STREAM, stream.resource.key) is None:
                raise no_such_stream(stream.resource)
            draft.remove(STREAM, stream.resource.key)
            buffer = await queues.get_in(draft, buffer_of(stream.resource))
            if buffer is not None:
                await queues.delete_in(draft, buffer)

        await self._engine.resources.write(decide)
        return {}

    # ---- tags --------------------------------------------------------------------------------------------

    async def tag_delivery_stream(self, call: Call, params: Structure) -> Structure:
        tags = TAGS.read(params["Tags"])
        stream = await self.existing_stream(call, params)
        await self.change(stream, lambda current: replace(current, tags=TAGS.added(current.tags, tags)))
        return {}

    async def untag_delivery_stream(self, call: Call, params: Structure) -> Structure:
        keys, stream = params["TagKeys"], await self.existing_stream(call, params)
        await self.change(stream, lambda current: replace(current, tags=TAGS.without(current.tags, keys)))
        return {}

    async def list_tags_for_delivery_stream(self, call: Call, params: Structure) -> Structure:
        stream = await self.existing_stream(call, params)
        limit, after = params.get("Limit") or TAGS.most, params.get("ExclusiveStartTagKey") or ""
        tags = [{"Key": key, "Value": value} for key, value in sorted(stream.tags.items()) if key > after]
        return {"Tags": tags[:limit], "HasMoreTags": len(tags) > limit}

    # ---- keys --------------------------------------------------------------------------------------------

    async def start_delivery_stream_encryption(self, call: Call, params: Structure) -> Structure:
        await self._encrypt(call, params, _encryption_of(params) or _OWN_KEY)
        return {}

    async def stop_delivery_stream_encryption(self, call: Call, params: Structure) -> Structure:
        await self._encrypt(call, params, {})
        return {}

    async def _encrypt(self, call: Call, params: Structure, key: Mapping[str, str]) -> None:
        """Let records that come from now on be sealed by a key, or by none."""
        stream = await self.existing_stream(call, params)
        await _check_key(self._calls, call, key)
        queues = self._engine.resources.queues

        async def decide(draft: Draft) -> None:
            current = await draft.get(STREAM, stream.resource.key)
            if current is None:
                raise no_such_stream(stream.resource)
            new_stream = replace(current, encryption=dict(key))
            draft.put(STREAM, stream.resource.key, new_stream)
            await queues.put_in(draft, _buffer(new_stream))

        await self._engine.resources.write(decide)

    # ---- finding -----------------------------------------------------------------------------------------

    async def existing_stream(self, call: Call, params: Structure) -> DeliveryStream:
        """The stream that a call names; raises AwsError (`ResourceNotFoundException`)."""
        name = ResourceName(call.account, call.region, params["DeliveryStreamName"])
        stream = await self._documents.get(STREAM, name.key)
        if stream is None:
            raise no_such_stream(name)
        return stream

    async def change(
        self, stream: DeliveryStream, change: Callable[[DeliveryStream], DeliveryStream]
    ) -> DeliveryStream:
        """Change a stream; raises AwsError (`ResourceNotFoundException`) if it was deleted meanwhile."""
        try:
            new_stream: DeliveryStream = await self._documents.update(STREAM, stream.resource.key, change)
        except NotFound:
            raise no_such_stream(stream.resource) from None
        return new_stream


def _buffer(stream: DeliveryStream) -> Queue:
    """The queue in which a stream's records wait."""
    attributes = _queue_attributes(stream)
    return Queue(0, buffer_of(stream.resource), retention_ms=KEPT_MS, attributes=attributes)


def _shown_destination(stream: DeliveryStream) -> Structure:
    """A stream's destination as answers have it, also in the form of plain S3 destinations."""
    settings = dict(stream.destination)
    s3_settings = {name: settings[name] for name in _S3_MEMBERS if name in settings}
    return {
        "DestinationId": DESTINATION,
        "S3DestinationDescription": s3_settings,
        "ExtendedS3DestinationDescription": settings,
    }


# ---- encryption of records while they wait ---------------------------------------------------------------------------
#
# The buffer's queue is sealed, by a customer's key or by the server's own.

_CUSTOMER: Final = "CUSTOMER_MANAGED_CMK"
_OWN_KEY: Final[Mapping[str, str]] = {"KeyType": "AWS_OWNED_CMK"}


def _encryption_of(params: Structure) -> dict[str, str]:
    """The encryption that a request asks for, empty: none; raises AwsError if key and kind do not fit."""
    configuration = params.get("DeliveryStreamEncryptionConfigurationInput") or {}
    if not configuration:
        return {}
    kind, key = configuration["KeyType"], configuration.get("KeyARN") or ""
    if (kind == _CUSTOMER) != bool(key):
        raise invalid(f"KeyARN must be given for {_CUSTOMER}, and for that alone.")
    return {"KeyType": kind, **({"KeyARN": key} if key else {})}


async def _check_key(calls: InnerCalls, call: Call, key: Mapping[str, str]) -> None:
    """Refuse a customer's key that the caller may not use, or nobody can: Firehose uses it in the caller's name.

    Raises:
        AwsError: `InvalidKMSResourceException`.
    """
    if "KeyARN" not in key:
        return
    params = {"KeyId": key["KeyARN"], "KeySpec": "AES_256"}
    try:
        await calls.call("kms", "GenerateDataKey", params, call.principal, call.region)
    except AwsError as refusal:
        raise error("InvalidKMSResourceException", refusal.message or refusal.code) from refusal


def _shown_encryption(stream: DeliveryStream) -> Structure:
    """The encryption of a stream as descriptions have it."""
    return {**stream.encryption, "Status": "ENABLED" if stream.encryption else "DISABLED"}


def _queue_attributes(stream: DeliveryStream) -> dict[str, str]:
    """The attributes of a stream's buffer that say which key encrypts it."""
    key = stream.encryption.get("KeyARN")
    if key:
        return {KEY: key}
    return {SQS_SSE: "true"} if stream.encryption else {}
