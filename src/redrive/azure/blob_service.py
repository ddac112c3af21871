"""The Blob service of the server's own storage accounts: containers, and the blobs that the server wrote into them.

    PUT, GET, HEAD, DELETE  /_storage/ACCOUNT/CONTAINER?restype=container
    GET                     /_storage/ACCOUNT/CONTAINER?restype=container&comp=list
    GET, HEAD, DELETE       /_storage/ACCOUNT/CONTAINER/BLOB
    GET                     /_storage/ACCOUNT/?comp=list
    GET …                   https://ACCOUNT.blob.{…}/CONTAINER/BLOB   where DNS leads there to this server

Blobs are dead letters: nobody else writes any.
https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
"""

from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

from redrive.azure.arm.destinations import check_container
from redrive.azure.arm.storage import Containers
from redrive.azure.blobs import HEAD, XML, BlobOperations, Blobs
from redrive.azure.recognise import BLOBS, account_at, is_for_blobs, is_storage_account
from redrive.azure.shared_access import PARAMETERS, Act, BlobAccess
from redrive.azure.storage_keys import PARAMETERS_MAX
from redrive.azure.wire.answers import AzureError, invalid, not_found
from redrive.engine.ports import Clock
from redrive.model.http import Request, Response

_VERSION: Final = "2021-12-02"
_ETAG: Final = '"0x8D0000000000000"'  # a container has no properties that could change
_PERMISSIONS: Final = {"GET": "r", "HEAD": "r", "DELETE": "d"}
_SERVICE: Final = (
    f"{HEAD}<StorageServiceProperties><Cors/><DefaultServiceVersion>{_VERSION}</DefaultServiceVersion>"
    "</StorageServiceProperties>"
)


class BlobPath(NamedTuple):
    """The storage account, the container and the blob that a request names; empty: it names none."""

    account: str
    container: str
    blob: str

    @property
    def folder(self) -> str:
        """The place of the container in the blob store."""
        return f"{self.account.lower()}/{self.container.lower()}"


class BlobService:
    """Answers for containers and blobs (`redrive.azure.gateway.Service`)."""

    def __init__(self, containers: Containers, blobs: Blobs, access: BlobAccess | None, clock: Clock) -> None:
        self._containers = containers
        self._blobs = BlobOperations(blobs)
        self._access = access  # Says who may use them; None: everyone may
        self._clock = clock

    def handles(self, path: str, host: str) -> bool:
        """See `Service.handles`."""
        return is_for_blobs(path, host)

    async def answer(self, request: Request) -> Response:
        """Answer a request about blobs (`Service.answer`); refusals are XML, as this service's are."""
        try:
            response = await self._answer(request)
        except AzureError as error:
            body = f"{HEAD}<Error><Code>{error.code}</Code><Message>{escape(error.message)}</Message></Error>"
            headers = {"x-ms-error-code": error.code}
            response = Response(error.status, body.encode(), XML, headers)
        response.headers = {"x-ms-version": _VERSION, **response.headers}
        return response

    async def _answer(self, request: Request) -> Response:
        """Check a request's credentials; then it is about an account, a container or a blob."""
        blob_place = _path_of(request)
        if not is_storage_account(blob_place.account):
            raise not_found("The specified resource does not exist.")
        query = _query_of(request)
        signature = {name: query.pop(name) for name in PARAMETERS & query.keys()}
        if self._access is not None:
            await self._access.check(
                request, blob_place.account, _act(request.method, blob_place, query), signature
            )
        if not blob_place.container:
            return await self._of_account(request.method, blob_place.account, query)
        check_container(blob_place.container)
        if not blob_place.blob:
            return await self._of_container(request, blob_place, query)
        await self._check_container(blob_place)
        return await self._blobs.one(request, blob_place.folder, blob_place.blob, query)

    async def _of_account(self, method: str, account: str, query: Mapping[str, str]) -> Response:
        """List the containers of an account, or show its properties."""
        restype, comp = query.get("restype"), query.get("comp")
        if method in ("GET", "HEAD") and (restype, comp) == (None, "list"):
            return await self._list(account, query.get("prefix", ""))
        if method in ("GET", "HEAD") and (restype, comp) == ("account", "properties"):
            headers = {
                "x-ms-sku-name": "Standard_LRS",
                "x-ms-account-kind": "StorageV2",
                "x-ms-is-hns-enabled": "false",
            }
            return Response(HTTPStatus.OK, b"", XML, headers)
        if method == "GET" and (restype, comp) == ("service", "properties"):
            return Response(HTTPStatus.OK, _SERVICE.encode(), XML)
        raise _unoffered()

    async def _of_container(
        self, request: Request, blob_place: BlobPath, query: Mapping[str, str]
    ) -> Response:
        """List the blobs of a container, or make, show or remove it."""
        if query.get("restype") != "container":
            raise _unoffered()
        if query.get("comp") == "list" and request.method == "GET":
            await self._check_container(blob_place)
            url = f"{request.scheme}://{request.host}{request.path.partition(blob_place.container)[0]}"
            return await self._blobs.list(blob_place.folder, query, url)
        if query.keys() != {"restype"}:
            raise _unoffered()
        return await self._answer_container(request.method, blob_place.account, blob_place.container)

    async def _check_container(self, blob_place: BlobPath) -> None:
        if not await self._containers.is_there(blob_place.account, blob_place.container):
            raise _no_such_container()

    async def _list(self, account: str, prefix: str) -> Response:
        """The containers of an account whose names begin so, all on one page."""
        names = [name for name in await self._containers.names(account) if name.startswith(prefix)]
        moment = formatdate(self._clock.now() / 1000, usegmt=True)
        items = "".join(
            f"<Container><Name>{escape(name)}</Name><Properties><Last-Modified>{moment}</Last-Modified>"
            f"<Etag>{escape(_ETAG)}</Etag><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"
            "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold></Properties>"
            "</Container>"
            for name in names
        )
        body = f"{HEAD}<EnumerationResults><Containers>{items}</Containers><NextMarker/></EnumerationResults>"
        return Response(HTTPStatus.OK, body.encode(), XML)

    async def _answer_container(self, method: str, account: str, container: str) -> Response:
        """Make, remove or show a container, by the method."""
        if method == "PUT":
            if not await self._containers.make(account, container):
                raise AzureError(
                    HTTPStatus.CONFLICT, "ContainerAlreadyExists", "The specified container already exists."
                )
            return self._empty_answer(HTTPStatus.CREATED)
        if method == "DELETE":
            if not await self._containers.remove(account, container):
                raise _no_such_container()
            return Response(HTTPStatus.ACCEPTED, b"", XML)
        if method in ("GET", "HEAD"):
            if not await self._containers.is_there(account, container):
                raise _no_such_container()
            return self._empty_answer(HTTPStatus.OK)
        raise AzureError(
            HTTPStatus.METHOD_NOT_ALLOWED, "UnsupportedHttpVerb", f"A container does not support {method}."
        )

    def _empty_answer(self, status: HTTPStatus) -> Response:
        """The headers of a container without a body; its time is now, as none is kept."""
        headers = {
            "ETag": _ETAG,
            "Last-Modified": formatdate(self._clock.now() / 1000, usegmt=True),
            "x-ms-lease-status": "unlocked",
            "x-ms-lease-state": "available",
            "x-ms-has-immutability-policy": "false",
            "x-ms-has-legal-hold": "false",
        }
        return Response(status, b"", XML, headers)


def _path_of(request: Request) -> BlobPath:
    """The storage account, the container and the blob that a request names."""
    account, path = account_at(request.host) or "", request.path.removeprefix("/")
    if request.path.startswith(BLOBS):
        account, _, path = request.path.removeprefix(BLOBS).partition("/")
    container, _, blob = path.partition("/")
    return BlobPath(account, container, unquote(blob))


def _act(method: str, blob_place: BlobPath, query: Mapping[str, str]) -> Act:
    """The act that a request is, in the letters of signatures: `s`ervice, `c`ontainer, `o`bject; `r`ead, `l`ist."""
    if not blob_place.container:
        return Act("s", "l" if query.get("comp") == "list" else "r")
    if not blob_place.blob:
        listing = "l" if query.get("comp") == "list" else _PERMISSIONS.get(method, "cw")
        return Act("c", listing, blob_place.container)
    return Act("o", _PERMISSIONS.get(method, "cw"), blob_place.container, blob_place.blob)


def _query_of(request: Request) -> dict[str, str]:
    """The parameters by names in lower case, the last of each, without `timeout`; raises AzureError."""
    try:
        read = parse_qs(request.query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    except ValueError:
        raise invalid("The URL has too many parameters.", "InvalidQueryParameterValue") from None
    return {name.lower(): values[-1] for name, values in read.items() if name.lower() != "timeout"}


def _no_such_container() -> AzureError:
    return not_found("The specified container does not exist.", "ContainerNotFound")


def _unoffered() -> AzureError:
    return invalid(
        "The server makes, shows, lists and removes containers, and lists, reads and removes blobs.",
        "UnsupportedQueryParameter",
    )
