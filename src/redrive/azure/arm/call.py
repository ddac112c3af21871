"""One call of the resource manager, as an operation sees it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import orjson

from redrive.azure.arm.schema import check_bytes
from redrive.azure.wire.answers import AzureError, forbidden, invalid
from redrive.azure.wire.arm_id import ArmId
from redrive.azure.wire.bearer import BearerCaller
from redrive.model.http import Request, Response

_LEVELS_ABOVE: Final = 8  # that answers may have above a document, in lists; orjson writes 254 in all


@dataclass(frozen=True, slots=True)
class ArmCall:
    """One call."""

    request: Request  # The original request
    params: Mapping[str, str]  # Parameters from the path
    query: Mapping[str, str]  # By names in lower case: `api-version`, `$top` …
    caller: BearerCaller  # The caller, already checked against the Azure subscription
    now: int  # ms
    base_url: str  # Prefix of URLs in answers

    @property
    def document(self) -> dict[str, Any]:
        """The body.

        Raises:
            AzureError: It is too long, no JSON object, or one that is nested too deeply to be shown again.
        """
        check_bytes(len(self.request.body))
        try:
            value = orjson.loads(self.request.body)
            orjson.dumps(reduce(_wrap_in_list, range(_LEVELS_ABOVE), value))
        except (ValueError, TypeError):
            raise _no_object() from None
        if not isinstance(value, dict):
            raise _no_object()
        return value

    @property
    def account_and_group(self) -> tuple[str, str]:
        """The Azure subscription and the resource group of the path, in lower case; no group where it has none."""
        return self.params["subscription"].lower(), self.params.get("group", "").lower()

    def resource(self, provider: str, *types: str) -> ArmId:
        """A resource's id in the call's group: types `domains`, `topics` have their names in params `domain`, `topic`."""
        parts: list[str] = []
        for kind in types:
            parts += [kind, self.params[kind.removesuffix("s")]]
        return ArmId(self.params["subscription"], self.params["group"], provider, tuple(parts))


Verb = Callable[[ArmCall], Awaitable[Response]]


def in_progress(document: Mapping[str, Any], state: str) -> dict[str, Any]:
    """The body of a written resource as if it were still being written, as Azure answers: clients then ask again.

    Those that take the first answer for the last (azure-mgmt-eventgrid up to 10.2, which `az` brings) read it twice,
    and lose the types of what has types within the second time: destinations, filters, mappings.

    Args:
        document: The resource; one that waits for somebody stays as it is.
        state: `Creating` or `Updating`.
    """
    properties = document["properties"]
    if properties["provisioningState"] != "Succeeded":
        return dict(document)
    return {**document, "properties": {**properties, "provisioningState": state}}


def check_theirs(call: ArmCall, *resources: ArmId) -> None:
    """Check that the resources a document refers to are the caller's as well.

    Raises:
        AzureError: It belongs to another account.
    """
    for resource in resources:
        if not call.caller.manages(resource.subscription):
            raise forbidden(
                f"The client does not have authorization over '{resource.text}', which the request names."
            )


def _wrap_in_list(document: Any, _: int) -> list[Any]:
    return [document]


def _no_object() -> AzureError:
    return invalid("The request content was invalid and could not be deserialized.", "InvalidRequestContent")
