"""Blobs of the server's own storage accounts, as the Blob service shows them: listed, read, described and removed.

https://learn.microsoft.com/rest/api/storageservices/operations-on-blobs
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol
from xml.sax.saxutils import escape

from redrive.azure.wire.answers import AzureError, invalid, not_found
from redrive.model.errors import NotFound
from redrive.model.http import Request, Response

XML: Final = "application/xml"
HEAD: Final = '<?xml version="1.0" encoding="utf-8"?>'
PAGE_MAX: Final = 1000  # entries of a page, of the 5,000 that Azure may show: each costs a look at a file
_RANGE: Final = re.compile(r"bytes=(\d{1,15})-(\d{1,15})?")
_LISTED: Final = frozenset(
    {"restype", "comp", "prefix", "delimiter", "marker", "maxresults", "include", "showonly"}
)
_PROPERTIES: Final = (
    "<AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><BlobType>BlockBlob</BlobType>"
    "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><ServerEncrypted>false</ServerEncrypted>"
)
_ALWAYS: Final[Mapping[str, str]] = {
    "Accept-Ranges": "bytes",
    "x-ms-blob-type": "BlockBlob",
    "x-ms-access-tier": "Hot",
    "x-ms-lease-status": "unlocked",
    "x-ms-lease-state": "available",
    "x-ms-server-encrypted": "false",
}


class Blob(NamedTuple):
    """A blob without its bytes."""

    name: str  # Within its container
    size: int  # Bytes
    modified_at: int  # ms
    etag: str  # Without quotes

    @property
    def content_type(self) -> str:
        """By the name: the store keeps none, and dead letters are JSON."""
        return "application/json" if self.name.endswith(".json") else "application/octet-stream"

    @property
    def modified(self) -> str:
        """As headers have it."""
        return formatdate(self.modified_at / 1000, usegmt=True)


class BlobPage(NamedTuple):
    """A page of a listing."""

    blobs: list[Blob]  # In order of their names
    folders: list[str]  # Beginnings of names, as far as the delimiter, that stand for all that begin so
    after: str  # The name that the next page begins behind; empty: this is the last


class Blobs(Protocol):
    """The server's own blob store, which keeps the blobs of a container below `ACCOUNT/CONTAINER`."""

    async def describe(self, container: str, name: str) -> tuple[str, int, int, str] | None:
        """A blob's name, bytes, time of the last change (ms) and entity tag; None: it is not there."""
        ...

    async def page(
        self, container: str, prefix: str, after: str, limit: int, *, by_folder: bool
    ) -> tuple[list[tuple[str, int, int, str]], list[str], str]:
        """A page of a container: blobs, folders, and the name that the next page begins behind."""
        ...

    async def read(self, path: str, first: int, length: int) -> bytes:
        """Some bytes of a blob; `NotFound` where it is not there."""
        ...

    async def remove(self, paths: list[str]) -> None:
        """Remove blobs; those that are not there are no error."""
        ...


class BlobOperations:
    """Answers for what is in a container."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def list(self, container: str, query: Mapping[str, str], url: str) -> Response:
        """List Blobs: https://learn.microsoft.com/rest/api/storageservices/list-blobs."""
        if unknown := query.keys() - _LISTED:
            raise invalid(f"The query parameter {min(unknown)} is not offered.", "UnsupportedQueryParameter")
        if query.get("delimiter", "/") not in ("", "/"):
            raise invalid("The delimiter of a listing is a slash.", "InvalidQueryParameterValue")
        limit = _number(query.get("maxresults"), PAGE_MAX)
        prefix, marker = query.get("prefix", ""), query.get("marker", "")
        by_folder = bool(query.get("delimiter"))
        blobs, folders, after = await self._blobs.page(container, prefix, marker, limit, by_folder=by_folder)
        page = BlobPage([Blob(*blob) for blob in blobs], folders, after)
        return Response(HTTPStatus.OK, _listing_text(page, container, query, url).encode(), XML)

    async def one(self, request: Request, container: str, name: str, query: Mapping[str, str]) -> Response:
        """Get Blob, Get Blob Properties and Delete Blob."""
        if query:
            raise invalid(f"The query parameter {min(query)} is not offered.", "UnsupportedQueryParameter")
        properties = await self._blobs.describe(container, name)
        if properties is None:
            raise _no_such_blob()
        blob = Blob(*properties)
        if (not_modified := _by_condition(request, blob)) is not None:
            return not_modified
        match request.method:
            case "GET":
                return await self._content(request, container, blob)
            case "HEAD":
                return Response(HTTPStatus.OK, b"", blob.content_type, _headers(blob), length=blob.size)
            case "DELETE":
                await self._blobs.remove([f"{container}/{name}"])
                return Response(HTTPStatus.ACCEPTED, b"", XML, {"x-ms-delete-type-permanent": "true"})
        raise AzureError(
            HTTPStatus.METHOD_NOT_ALLOWED,
            "UnsupportedHttpVerb",
            "The server writes blobs itself; others may read and delete them.",
        )

    async def _content(self, request: Request, container: str, blob: Blob) -> Response:
        """The bytes of a blob, or those of the range that is asked for, with their MD5 if that is."""
        first, length, headers = 0, blob.size, dict(_headers(blob))
        range_header = request.headers.get("x-ms-range") or request.headers.get("range") or ""
        match = _RANGE.fullmatch(range_header)
        if match is not None:
            first_text, last_text = match.groups()
            first = int(first_text)
            last = min(int(last_text or blob.size), blob.size - 1)
            if first > last:
                raise _range_refusal(blob)
            length = last - first + 1
            headers["Content-Range"] = f"bytes {first}-{last}/{blob.size}"
        try:
            body = await self._blobs.read(f"{container}/{blob.name}", first, length)
        except NotFound:
            raise _no_such_blob() from None
        if request.headers.get("x-ms-range-get-content-md5", "").lower() == "true":
            digest = hashlib.md5(body, usedforsecurity=False).digest()
            headers["Content-MD5"] = b64encode(digest).decode()
        status = HTTPStatus.OK if match is None else HTTPStatus.PARTIAL_CONTENT
        return Response(status, body, blob.content_type, headers)


def _headers(blob: Blob) -> Mapping[str, str]:
    times = {"Last-Modified": blob.modified, "x-ms-creation-time": blob.modified}
    return {**_ALWAYS, **times, "ETag": f'"{blob.etag}"'}


def _by_condition(request: Request, blob: Blob) -> Response | None:
    """The answer to a request whose conditions do not hold; None: they do. Raises AzureError (`ConditionNotMet`).

    Of If-None-Match and If-Modified-Since one has to hold, of the others each:
    https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations.
    """
    headers, modified_at = request.headers, blob.modified_at // 1000
    is_other = "if-match" in headers and not _has_tag(headers["if-match"], blob)
    is_newer = "if-unmodified-since" in headers and modified_at > _seconds(headers["if-unmodified-since"])
    unchanged = []
    if "if-none-match" in headers:
        unchanged.append(_has_tag(headers["if-none-match"], blob))
    if "if-modified-since" in headers:
        unchanged.append(modified_at <= _seconds(headers["if-modified-since"]))
    is_unchanged = bool(unchanged) and all(unchanged)
    if is_unchanged and not is_other and not is_newer and request.method in ("GET", "HEAD"):
        return Response(HTTPStatus.NOT_MODIFIED, b"", XML, {"ETag": f'"{blob.etag}"'})
    if is_other or is_newer or is_unchanged:
        raise AzureError(
            HTTPStatus.PRECONDITION_FAILED,
            "ConditionNotMet",
            "The condition specified using HTTP conditional header(s) is not met.",
        )
    return None


def _has_tag(tags: str, blob: Blob) -> bool:
    """True if one of some ETags, with or without quotes, is the blob's, or stands for all (`*`)."""
    return any(each.strip().strip('"') in ("*", blob.etag) for each in tags.split(","))


def _seconds(text: str) -> float:
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        raise invalid("The date of a condition cannot be read.", "InvalidHeaderValue") from None


def _number(text: str | None, maximum: int) -> int:
    """The number of entries that a page may have, at most `maximum`; raises AzureError."""
    if text is None:
        return maximum
    if not text.isdecimal() or not int(text[:9]):
        raise invalid("The maxresults of a listing is a positive number.", "OutOfRangeQueryParameterValue")
    return min(int(text[:9]), maximum)


def _listing_text(page: BlobPage, container: str, query: Mapping[str, str], url: str) -> str:
    """A page of a listing as XML."""
    name = container.partition("/")[2]
    texts = {tag: query.get(tag.lower()) for tag in ("Prefix", "Marker", "MaxResults", "Delimiter")}
    parameters = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in texts.items() if text)
    items = "".join(map(_xml, page.blobs))
    folders = "".join(f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>" for folder in page.folders)
    return (
        f'{HEAD}<EnumerationResults ServiceEndpoint="{escape(url)}" ContainerName="{escape(name)}">{parameters}'
        f"<Blobs>{items}{folders}</Blobs><NextMarker>{escape(page.after)}</NextMarker></EnumerationResults>"
    )


def _xml(blob: Blob) -> str:
    """A blob's entry in a listing."""
    return (
        f"<Blob><Name>{escape(blob.name)}</Name><Properties><Creation-Time>{blob.modified}</Creation-Time>"
        f"<Last-Modified>{blob.modified}</Last-Modified><Etag>{escape(blob.etag)}</Etag>"
        f"<Content-Length>{blob.size}</Content-Length><Content-Type>{blob.content_type}</Content-Type>"
        f"<Content-Encoding/><Content-Language/><Content-MD5/><Cache-Control/>{_PROPERTIES}</Properties></Blob>"
    )


def _no_such_blob() -> AzureError:
    return not_found("The specified blob does not exist.", "BlobNotFound")


def _range_refusal(blob: Blob) -> AzureError:
    """The refusal of a range that begins behind the blob's end."""
    return AzureError(
        HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
        "InvalidRange",
        "The range specified is invalid for the current size of the resource.",
        headers={"Content-Range": f"bytes */{blob.size}"},
    )
