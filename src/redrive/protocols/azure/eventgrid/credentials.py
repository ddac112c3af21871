"""Who may publish to a topic or a domain.

    aeg-sas-key: <one of its keys>           also as a parameter of the URL
    aeg-sas-token: r=…&e=…&s=…               signed with one of its keys
    Authorization: SharedAccessSignature r=…&e=…&s=…
    Authorization: Bearer <token of somebody who manages the Azure subscription>

The first of these that a request has decides. Where `disableLocalAuth` is set, keys and what is signed with them open
nothing.
"""

import hmac
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from redrive.engine.ports import Clock
from redrive.model.topic import Topic
from redrive.protocols.azure.eventgrid.refusals import INVALID_SAS, Unacceptable, unauthorized
from redrive.protocols.azure.eventgrid.sas_token import check_token
from redrive.protocols.azure.eventgrid.settings import KEYS, topic_settings
from redrive.protocols.azure.wire.bearer import Authentication
from redrive.protocols.azure.wire.errors import AzureError
from redrive.protocols.http import Request

KEY: Final = "aeg-sas-key"
SIGNED: Final = "aeg-sas-token"
_SIGNATURE: Final = "sharedaccesssignature"
_BEARER: Final = "bearer"


class Credentials:
    """Lets in who may come in."""

    def __init__(self, authentication: Authentication, clock: Clock, *, required: bool) -> None:
        """Check credentials.

        Args:
            authentication: Tells who a bearer is.
            clock: Clients' own, by which tokens end.
            required: Whether credentials are looked at at all.
        """
        self._authentication = authentication
        self._clock = clock
        self._required = required

    async def check(self, request: Request, topic: Topic) -> None:
        """Let a request pass.

        Args:
            request: What came.
            topic: The topic or domain that it is for.

        Raises:
            Unacceptable: It brings nothing that opens this topic.
        """
        if not self._required:
            return
        key, token, bearer = brought(request)
        if bearer:
            await self._check_bearer(request, topic)
        elif key is None and token is None:
            raise unauthorized(
                "Request must contain one of the following authorization signature: aeg-sas-token, aeg-sas-key."
            )
        elif topic_settings(topic).local_auth_disabled:
            raise _not_authorized(request, "Local authentication is disabled for this resource")
        elif key is not None:
            _check_key(request, topic, key)
        else:
            self._check_token(request, topic, token or "")

    async def _check_bearer(self, request: Request, topic: Topic) -> None:
        try:
            caller = await self._authentication.caller(request)
        except AzureError as refusal:
            raise unauthorized(refusal.message) from refusal
        if not caller.manages(topic.name.account):
            raise _not_authorized(request, "The bearer does not manage the Azure subscription")

    def _check_token(self, request: Request, topic: Topic, text: str) -> None:
        places = (request.path, topic_settings(topic).id)
        try:
            check_token(text, _keys(topic), places, self._clock.now())
        except ValueError as error:
            raise _not_authorized(request, str(error)) from error


class Brought(NamedTuple):
    """What a request brings: at most one of these."""

    key: str | None = None
    token: str | None = None
    bearer: bool = False


def brought(request: Request, key_scheme: str = "") -> Brought:
    """The first credential that a request has.

    Args:
        request: What came.
        key_scheme: What Authorization calls a key, where keys may come so too; in lower case.
    """
    headers = request.headers
    key = headers.get(KEY)
    if key is None and KEY in request.query.lower():
        asked = {name.lower(): values for name, values in parse_qs(request.query).items()}
        key = asked.get(KEY, [None])[0]
    if key is not None:
        return Brought(key=key)
    if SIGNED in headers:
        return Brought(token=headers[SIGNED])
    scheme, _, given = headers.get("authorization", "").partition(" ")
    scheme = scheme.lower()
    if scheme == _SIGNATURE:
        return Brought(token=given)
    if scheme and scheme == key_scheme:
        return Brought(key=given.strip())
    return Brought(bearer=scheme == _BEARER)


def _check_key(request: Request, topic: Topic, key: str) -> None:
    if not key:
        raise Unacceptable("The request's authorization key is empty.", INVALID_SAS)
    matching = [hmac.compare_digest(key.encode(), own.encode()) for own in _keys(topic)]
    if not any(matching):
        raise _not_authorized(request, "The key is not one of this resource's")


def _keys(topic: Topic) -> list[str]:
    return [topic.attributes[name] for name in KEYS if name in topic.attributes]


def _not_authorized(request: Request, reason: str) -> Unacceptable:
    return unauthorized(
        f"The request authorization key is not authorized for {request.host.upper()}. This is due to the reason:"
        f" {reason}."
    )
