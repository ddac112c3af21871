"""Who may publish to a namespace's topics and receive from them.

Authorization: SharedAccessKey <one of the namespace's or the topic's keys>
Authorization: Bearer <a token of somebody who manages the Azure subscription>
"""

import hmac
from http import HTTPStatus

from redrive.model.topic import Topic
from redrive.protocols.azure.eventgrid.settings import KEYS
from redrive.protocols.azure.namespaces.places import Namespace
from redrive.protocols.azure.wire.bearer import Authentication
from redrive.protocols.azure.wire.errors import AzureError
from redrive.protocols.http import Request


class Credentials:
    """Lets in who may come in."""

    def __init__(self, authentication: Authentication, *, required: bool) -> None:
        """Check bearer tokens here.

        Args:
            authentication: Tells who a bearer is.
            required: Whether credentials are looked at at all.
        """
        self._authentication = authentication
        self._required = required

    async def check(self, request: Request, namespace: Namespace, topic: Topic | None) -> None:
        """Let a request pass.

        Args:
            request: What came.
            namespace: Where it goes.
            topic: The topic it goes to, if that is there.

        Raises:
            AzureError: It brings nothing that opens this namespace.
        """
        if not self._required:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            caller = await self._authentication.caller(request)
            if not caller.manages(namespace.name.account):
                raise _unauthorized("The bearer does not manage the namespace's Azure subscription.")
            return
        if scheme.lower() != "sharedaccesskey":
            raise _unauthorized("The request must contain an Authorization of SharedAccessKey or Bearer.")
        keys = [namespace.attributes[name] for name in KEYS]
        keys += [topic.attributes[name] for name in KEYS if topic is not None]
        matching = [hmac.compare_digest(given.strip().encode(), key.encode()) for key in keys]
        if not any(matching):
            raise _unauthorized("The request authorization key is not authorized for this namespace.")


def _unauthorized(message: str) -> AzureError:
    return AzureError(HTTPStatus.UNAUTHORIZED, "Unauthorized", message)
