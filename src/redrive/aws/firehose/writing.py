"""Objects on their way into buckets, by the operations of S3 as any client calls them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from redrive.aws.firehose.records import DeliveryStream
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

#: Of one request to this server's S3; what is larger goes in parts.
_PART_BYTES: Final = 8 * 1024 * 1024
_TYPE: Final = "application/octet-stream"

Ask = Callable[..., Awaitable[Structure]]


class ObjectWriter:
    """Puts objects into the buckets of streams."""

    def __init__(self, calls: InnerCalls, roles: ServiceRoles) -> None:
        self._calls = calls
        self._roles = roles

    async def put(self, stream: DeliveryStream, key: str, content: bytes) -> None:
        """Put an object, whole and on disk when this returns.

        Raises:
            AwsError: S3 refuses.
        """
        principal = await self._roles.acting(stream.account, stream.role, stream.region)
        where = {"Bucket": stream.bucket, "Key": key}

        async def ask(operation: str, **params: Any) -> Structure:
            return await self._calls.call("s3", operation, {**where, **params}, principal, stream.region)

        if len(content) <= _PART_BYTES:
            await ask("PutObject", Body=content, ContentType=_TYPE)
        else:
            await _put_parts(ask, content)


async def _put_parts(ask: Ask, content: bytes) -> None:
    upload = (await ask("CreateMultipartUpload", ContentType=_TYPE))["UploadId"]
    parts: list[Mapping[str, Any]] = []
    try:
        for begin in range(0, len(content), _PART_BYTES):
            number, body = len(parts) + 1, content[begin : begin + _PART_BYTES]
            answer = await ask("UploadPart", UploadId=upload, PartNumber=number, Body=body)
            parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        await ask("CompleteMultipartUpload", UploadId=upload, MultipartUpload={"Parts": parts})
    except AwsError:
        await ask("AbortMultipartUpload", UploadId=upload)
        raise
