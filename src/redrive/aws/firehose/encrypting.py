"""Encryption of records while they wait: the buffer's queue is sealed, by a customer's key or by the server's own."""

from collections.abc import Mapping
from typing import Final

from redrive.aws.encryption.encryption import SQS_SSE
from redrive.aws.encryption.sealer import KEY
from redrive.aws.firehose.errors import error, invalid
from redrive.aws.firehose.records import DeliveryStream
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

_CUSTOMER: Final = "CUSTOMER_MANAGED_CMK"
OWN: Final[Mapping[str, str]] = {"KeyType": "AWS_OWNED_CMK"}


def encryption_of(params: Structure) -> dict[str, str]:
    """The encryption that a request asks for; empty: none.

    Raises:
        AwsError: A customer's key is not named, or another is.
    """
    configuration = params.get("DeliveryStreamEncryptionConfigurationInput") or {}
    if not configuration:
        return {}
    kind, key = configuration["KeyType"], configuration.get("KeyARN") or ""
    if (kind == _CUSTOMER) != bool(key):
        raise invalid(f"KeyARN must be given for {_CUSTOMER}, and for that alone.")
    return {"KeyType": kind, **({"KeyARN": key} if key else {})}


async def check_key(calls: InnerCalls, call: Call, key: Mapping[str, str]) -> None:
    """Refuse a customer's key that the caller may not use, or nobody can: Firehose uses it in the caller's name.

    Raises:
        AwsError: `InvalidKMSResourceException`.
    """
    if "KeyARN" not in key:
        return
    params = {"KeyId": key["KeyARN"], "KeySpec": "AES_256"}
    try:
        await calls.call("kms", "GenerateDataKey", params, call.principal, call.region)
    except AwsError as refused:
        raise error("InvalidKMSResourceException", refused.message or refused.code) from refused


def shown(stream: DeliveryStream) -> Structure:
    """The encryption of a stream as descriptions have it."""
    return {**stream.encryption, "Status": "ENABLED" if stream.encryption else "DISABLED"}


def queue_attributes(stream: DeliveryStream) -> dict[str, str]:
    """The attributes by which its buffer is sealed."""
    key = stream.encryption.get("KeyARN")
    if key:
        return {KEY: key}
    return {SQS_SSE: "true"} if stream.encryption else {}
