"""Statuses of storage services that mean something of their own: the same for blobs and queues, Azure's and S3's."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from redrive.endpoints.verdicts import DISABLED, MISSING, NOT_AUTHENTICATED, TOO_LARGE, Meaning

BY_STATUS: Final[Mapping[int, Meaning]] = {
    HTTPStatus.UNAUTHORIZED: NOT_AUTHENTICATED,
    HTTPStatus.FORBIDDEN: NOT_AUTHENTICATED,
    HTTPStatus.NOT_FOUND: MISSING,
    HTTPStatus.CONFLICT: DISABLED,  # being deleted, or kept from changing
    HTTPStatus.PRECONDITION_FAILED: DISABLED,  # somebody holds a lease
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TOO_LARGE,
}
