"""The Blob service of the server's own storage accounts, as far as containers go: made, found, listed and removed.

    PUT, GET, HEAD, DELETE  /_storage/ACCOUNT/CONTAINER?restype=container
    GET                     /_storage/ACCOUNT/?comp=list

Blobs are dead letters, which are read in the folder that they are in.
https://learn.microsoft.com/rest/api/storageservices/operations-on-containers
"""

from email.utils import formatdate
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from redrive.access.refusals import Refusals
from redrive.engine.ports import Clock
from redrive.protocols.azure.arm.destinations import check_container, is_storage_account
from redrive.protocols.azure.arm.storage import BLOBS, Containers
from redrive.protocols.azure.storage_keys import PARAMETERS_MAX, StorageKeys
from redrive.protocols.azure.wire.errors import AzureError, invalid, not_found
from redrive.protocols.http import Request, Response

_XML: Final = "application/xml"
_HEAD: Final = '<?xml version="1.0" encoding="utf-8"?>'
_VERSION: Final = "2021-12-02"
_ETAG: Final = '"0x8D0000000000000"'  # a container has no properties that could change


class BlobService:
    """Answers for containers (`redrive.protocols.azure.gateway.Service`)."""

    def __init__(
        self, containers: Containers, keys: StorageKeys, clock: Clock, refusals: Refusals, *, required: bool
    ) -> None:
        """Offer these containers.

        Args:
            containers: Of the blob store.
            keys: What requests are signed with.
            clock: The system's, which clients sign by.
            refusals: Where those who are not let in are counted.
            required: Whether requests have to be signed.
        """
        self._containers = containers
        self._keys = keys
        self._clock = clock
        self._refusals = refusals
        self._required = required

    def handles(self, path: str, host: str) -> bool:  # noqa: ARG002 - as Service
        """See `Service.handles`."""
        return path.startswith(BLOBS)

    async def answer(self, request: Request) -> Response:
        """See `Service.answer`; refusals are XML, as this service's are."""
        try:
            answered = await self._answer(request)
        except AzureError as error:
            body = (
                f"{_HEAD}<Error><Code>{error.code}</Code><Message>{escape(error.message)}</Message></Error>"
            )
            headers = {"x-ms-error-code": error.code}
            answered = Response(error.status, body.encode(), _XML, headers)
        answered.headers = {"x-ms-version": _VERSION, **answered.headers}
        return answered

    async def _answer(self, request: Request) -> Response:
        account, _, container = request.path.removeprefix(BLOBS).partition("/")
        if not is_storage_account(account):
            raise not_found("The specified resource does not exist.")
        self._check_signature(request, account)
        query = _query_of(request)
        if request.method == "GET" and not container and query.get("comp") == "list":
            return await self._list(account, query.get("prefix", ""))
        if query != {"restype": "container"}:
            raise invalid(
                "The server offers containers, and no other operation.", "UnsupportedQueryParameter"
            )
        check_container(container)
        return await self._one(request.method, account, container)

    def _check_signature(self, request: Request, account: str) -> None:
        if self._required and not self._keys.signed(request, account, self._clock.now()):
            self._refusals.add("SharedKeyInvalid", address=request.client_host, identity=account)
            raise AzureError(
                HTTPStatus.FORBIDDEN,
                "AuthenticationFailed",
                "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
                "correctly including the signature.",
            )

    async def _list(self, account: str, prefix: str) -> Response:
        names = [name for name in await self._containers.names(account) if name.startswith(prefix)]
        moment = formatdate(self._clock.now() / 1000, usegmt=True)
        shown = "".join(
            f"<Container><Name>{escape(name)}</Name><Properties><Last-Modified>{moment}</Last-Modified>"
            f"<Etag>{escape(_ETAG)}</Etag><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"
            "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold></Properties>"
            "</Container>"
            for name in names
        )
        body = (
            f"{_HEAD}<EnumerationResults><Containers>{shown}</Containers><NextMarker/></EnumerationResults>"
        )
        return Response(HTTPStatus.OK, body.encode(), _XML)

    async def _one(self, method: str, account: str, container: str) -> Response:
        if method == "PUT":
            if not await self._containers.make(account, container):
                raise AzureError(
                    HTTPStatus.CONFLICT, "ContainerAlreadyExists", "The specified container already exists."
                )
            return self._shown(HTTPStatus.CREATED)
        if method == "DELETE":
            if not await self._containers.remove(account, container):
                raise _no_such_container()
            return Response(HTTPStatus.ACCEPTED, b"", _XML)
        if method in ("GET", "HEAD"):
            if not await self._containers.is_there(account, container):
                raise _no_such_container()
            return self._shown(HTTPStatus.OK)
        raise AzureError(
            HTTPStatus.METHOD_NOT_ALLOWED, "UnsupportedHttpVerb", f"A container does not support {method}."
        )

    def _shown(self, status: HTTPStatus) -> Response:
        headers = {
            "ETag": _ETAG,
            "Last-Modified": formatdate(self._clock.now() / 1000, usegmt=True),
            "x-ms-lease-status": "unlocked",
            "x-ms-lease-state": "available",
            "x-ms-has-immutability-policy": "false",
            "x-ms-has-legal-hold": "false",
        }
        return Response(status, b"", _XML, headers)


def _query_of(request: Request) -> dict[str, str]:
    try:
        read = parse_qs(request.query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    except ValueError:
        raise invalid("The URL has too many parameters.", "InvalidQueryParameterValue") from None
    return {name.lower(): values[-1] for name, values in read.items() if name.lower() != "timeout"}


def _no_such_container() -> AzureError:
    return not_found("The specified container does not exist.", "ContainerNotFound")
