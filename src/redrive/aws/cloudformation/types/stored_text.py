"""Documents of properties that lie in a bucket."""

from collections.abc import Mapping
from typing import Any

from redrive.aws.cloudformation.types.resource_type import Ask, pick


async def stored_text(ask: Ask, location: Mapping[str, Any]) -> bytes:
    """The contents of an object.

    Args:
        ask: Asks S3.
        location: `Bucket`, `Key`, and `Version` where it is not the last one.

    Raises:
        AwsError: It cannot be read.
    """
    version = {"VersionId": location["Version"]} if "Version" in location else {}
    answer = await ask("s3", "GetObject", **pick(location, "Bucket", "Key"), **version)
    body = answer.get("Body") or b""
    if isinstance(body, bytes):
        return body
    return b"".join([part async for part in body])
