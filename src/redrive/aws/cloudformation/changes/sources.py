"""The services that stacks ask, and the sources of templates: in the request, or in a bucket of this server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.cloudformation.documents.records import Stack
from redrive.aws.cloudformation.serverless.transform import Translator
from redrive.aws.cloudformation.types.resource_type import Ask
from redrive.aws.cloudformation.types.table import offered_types
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure


@dataclass(frozen=True)
class Services:
    """The services of this server, for stacks."""

    calls: InnerCalls  # Call them
    offered: Mapping[str, Any]  # The operations of each, by botocore's name of the service
    base_url: str  # What URLs of this server begin with
    identities: Identities  # Those who change stacks
    translator: Translator = field(default_factory=Translator)  # Of templates of serverless applications

    @cached_property
    def roles(self) -> ServiceRoles:
        """The roles that stacks act as."""
        return ServiceRoles(self.identities, "cloudformation", "AWSCloudFormation", _unassumable)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The resource types that can be made."""
        return offered_types(self.offered)

    def ask_for(self, stack: Stack) -> Ask:
        """Returns what calls operations as the stack's role, or else with the rights of whoever changed it last."""

        async def ask(service: str, operation: str, *, in_region: str = "", **params: Any) -> Structure:
            if not await self.calls.has(service, operation):
                raise AwsError("UnknownOperation", f"This server does not offer {service} {operation}.")
            account, role = stack.name.account, stack.aim.role
            if role:
                principal = await self.roles.acting(account, role, stack.name.region)
            else:
                principal = await self.identities.again(account, stack.caller, stack.session)
            region = in_region or stack.name.region
            return await self.calls.call(service, operation, params, principal, region, of_stack=True)

        return ask


def _unassumable(role: str) -> AwsError:
    return invalid(f"Role {role} is invalid or cannot be assumed")


# ---- sources of templates --------------------------------------------------------------------------------------

BODY_BYTES_MAX: Final = 51_200
OBJECT_BYTES_MAX: Final = 1_000_000
_IN_HOST: Final = re.compile(r"(.+)\.s3[.-][a-z0-9.-]*amazonaws\.com")


async def template_body(services: Services, call: Call, params: Structure) -> str:
    """The text of the template that a caller gives; empty where none is given.

    Raises:
        AwsError: It is too long, or is not where the caller says.
    """
    body: str | None = params.get("TemplateBody")
    url: str | None = params.get("TemplateURL")
    if body and url:
        raise invalid("Specify only one of the following parameters: TemplateBody, TemplateURL")
    if body:
        if len(body.encode()) > BODY_BYTES_MAX:
            raise invalid(
                f"1 validation error detected: Value '{body[:100]}…' at 'templateBody' failed to satisfy constraint:"
                f" Member must have length less than or equal to {BODY_BYTES_MAX}"
            )
        return body
    return await object_text(services, call, url) if url else ""


async def object_text(services: Services, call: Call, url: str) -> str:
    """The text of an object in a bucket of this server.

    Raises:
        AwsError: The address is not that of a bucket, or the object cannot be read.
    """
    return await text_in_bucket(services, call, *bucket_and_key(url))


async def text_in_bucket(services: Services, call: Call, bucket: str, key: str) -> str:
    """The text of an object; see `object_text`."""
    try:
        answer = await services.calls.call(
            "s3", "GetObject", {"Bucket": bucket, "Key": key}, call.principal, call.region
        )
    except AwsError as error:
        raise invalid(f"S3 error: {error.message}") from None
    content: bytes = answer["Body"]
    if len(content) > OBJECT_BYTES_MAX:
        raise invalid(f"Template may not exceed {OBJECT_BYTES_MAX} bytes in size.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise invalid("Template format error: unsupported structure.") from None


def bucket_and_key(url: str) -> tuple[str, str]:
    """The bucket and the key that an address names, in whichever of S3's forms.

    Raises:
        AwsError: It names none.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise invalid("TemplateURL must be a supported URL.") from None
    path = unquote(parts.path).lstrip("/")
    if parts.scheme == "s3":
        raise invalid(f"S3 error: Domain name specified in {host} is not a valid S3 domain")
    if parts.scheme not in ("http", "https"):
        raise invalid("TemplateURL must be a supported URL.")
    match = _IN_HOST.fullmatch(host)
    bucket, key = (match[1], path) if match else (path.partition("/")[0], path.partition("/")[2])
    if not bucket or not key:
        raise invalid("TemplateURL must be a supported URL.")
    return bucket, key
