"""The Blob service of the server's own storage accounts, as far as containers go: made, found, listed and removed.

    PUT, GET, HEAD, DELETE  /_storage/ACCOUNT/CONTAINER?restype=container
    GET                     /_storage/ACCOUNT/?comp=list
    PUT …                   https://ACCOUNT.blob.{…}/CONTAINER?restype=container   where DNS leads there to this server

Blobs are dead letters, which are read in the folder that they are in.
https://learn.microsoft.com/rest/api/storageservices/operations-on-containers
"""

from email.utils import formatdate
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from redrive.azure.arm.destinations import check_container, is_storage_account
from redrive.azure.arm.storage import BLOBS, Containers
from redrive.azure.blob_access import BlobAccess
from redrive.azure.storage_keys import PARAMETERS_MAX
from redrive.azure.wire.errors import AzureError, invalid, not_found
from redrive.engine.ports import Clock
from redrive.http import Request, Response

_HOST_MARK: Final = ".blob."
_XML: Final = "application/xml"
_HEAD: Final = '<?xml version="1.0" encoding="utf-8"?>'
_VERSION: Final = "2021-12-02"
_ETAG: Final = '"0x8D0000000000000"'  # a container has no properties that could change


class BlobService:
    """Answers for containers (`redrive.azure.gateway.Service`)."""

    def __init__(self, containers: Containers, access: BlobAccess | None, clock: Clock) -> None:
        """Offer these containers.

        Args:
            containers: Of the blob store.
            access: Says who may use them; None: everybody.
            clock: The system's.
        """
        self._containers = containers
        self._access = access
        self._clock = clock

    def handles(self, path: str, host: str) -> bool:
        """See `Service.handles`."""
        return path.startswith(BLOBS) or _account_at(host) is not None

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
        account, container = _named(request)
        if not is_storage_account(account):
            raise not_found("The specified resource does not exist.")
        if self._access is not None:
            await self._access.check(request, account)
        query = _query_of(request)
        if request.method == "GET" and not container and query.get("comp") == "list":
            return await self._list(account, query.get("prefix", ""))
        if query != {"restype": "container"}:
            raise invalid(
                "The server offers containers, and no other operation.", "UnsupportedQueryParameter"
            )
        check_container(container)
        return await self._one(request.method, account, container)

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


def _account_at(host: str) -> str | None:
    """The storage account whose host this is, `letters.blob.example.com`; None: of none."""
    name, mark, _ = host.lower().partition(_HOST_MARK)
    return name if mark and is_storage_account(name) else None


def _named(request: Request) -> tuple[str, str]:
    """The storage account and the container that a request names."""
    if request.path.startswith(BLOBS):
        account, _, container = request.path.removeprefix(BLOBS).partition("/")
        return account, container
    return _account_at(request.host) or "", request.path.removeprefix("/")


def _query_of(request: Request) -> dict[str, str]:
    try:
        read = parse_qs(request.query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    except ValueError:
        raise invalid("The URL has too many parameters.", "InvalidQueryParameterValue") from None
    return {name.lower(): values[-1] for name, values in read.items() if name.lower() != "timeout"}


def _no_such_container() -> AzureError:
    return not_found("The specified container does not exist.", "ContainerNotFound")
