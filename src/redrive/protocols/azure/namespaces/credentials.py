"""Who may publish to a namespace's topics and receive from them.

    Authorization: SharedAccessKey <one of the namespace's or the topic's keys>
    aeg-sas-key: <the same>                  also as a parameter of the URL
    aeg-sas-token: r=…&e=…&s=…               signed with one of them
    Authorization: SharedAccessSignature r=…&e=…&s=…
    Authorization: Bearer <token of somebody who manages the Azure subscription>

What is signed is for the namespace, for a topic or for an event subscription, and opens what is below that. Source:
"Authenticate Azure Event Grid clients using access keys or shared access signatures".
"""

import hmac
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from redrive.engine.ports import Clock
from redrive.model.topic import Topic
from redrive.protocols.azure.eventgrid.credentials import brought
from redrive.protocols.azure.eventgrid.sas_token import check_token
from redrive.protocols.azure.eventgrid.settings import KEYS
from redrive.protocols.azure.namespaces.places import Namespace
from redrive.protocols.azure.wire.bearer import Authentication
from redrive.protocols.azure.wire.errors import AzureError
from redrive.protocols.http import Request

_KEY_SCHEME: Final = "sharedaccesskey"
_NAMESPACE_PARTS: Final = 5  # of a path: nothing, `eventgrid`, the subscription, the group, the namespace


class Credentials:
    """Lets in who may come in."""

    def __init__(self, authentication: Authentication, clock: Clock, *, required: bool) -> None:
        """Check credentials.

        Args:
            authentication: Tells who a bearer is.
            clock: Clients' own, by which signatures end.
            required: Whether credentials are looked at at all.
        """
        self._authentication = authentication
        self._clock = clock
        self._required = required

    async def check(self, request: Request, path: str, namespace: Namespace, topic: Topic | None) -> None:
        """Let a request pass.

        Args:
            request: What came.
            path: Where it goes, from `/eventgrid/` on, whatever host it was sent to.
            namespace: The namespace in it.
            topic: The topic in it, if that is there.

        Raises:
            AzureError: It brings nothing that opens this place.
        """
        if not self._required:
            return
        key, token, bearer = brought(request, _KEY_SCHEME)
        keys = [namespace.attributes[name] for name in KEYS]
        keys += [topic.attributes[name] for name in KEYS if topic is not None]
        if bearer:
            caller = await self._authentication.caller(request)
            if not caller.manages(namespace.name.account):
                raise _unauthorized("The bearer does not manage the namespace's Azure subscription.")
        elif key is not None:
            _check_key(key, keys)
        elif token is not None:
            self._check_token(token, keys, path)
        else:
            raise _unauthorized(
                "The request must contain an Authorization of SharedAccessKey, SharedAccessSignature or Bearer, an"
                " aeg-sas-key or an aeg-sas-token."
            )

    def _check_token(self, token: str, keys: Sequence[str], path: str) -> None:
        try:
            check_token(token, keys, _places(path), self._clock.now())
        except ValueError as error:
            said = f"The request authorization signature is not authorized: {error}."
            raise _unauthorized(said) from error


def _check_key(key: str, keys: Sequence[str]) -> None:
    matching = [hmac.compare_digest(key.encode(), own.encode()) for own in keys]
    if not any(matching):
        raise _unauthorized("The request authorization key is not authorized for this namespace.")


def _places(path: str) -> tuple[str, str]:
    """What a request is for, without its verb: from here, and from a namespace that has a host of its own."""
    place = path.rpartition(":")[0]
    return place, "/" + "/".join(place.split("/")[_NAMESPACE_PARTS:])


def _unauthorized(message: str) -> AzureError:
    return AzureError(HTTPStatus.UNAUTHORIZED, "Unauthorized", message)
