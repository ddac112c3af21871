"""What a status of a storage service means: the same for blobs and queues, Azure's and S3's."""

from http import HTTPStatus
from typing import Final

from redrive.endpoints import verdicts
from redrive.endpoints.verdicts import Verdict
from redrive.model.attempt import Reason
from redrive.model.delivery import Outcome

_BY_STATUS: Final = {
    HTTPStatus.UNAUTHORIZED: (Outcome.FAILED, Reason.DENIED),
    HTTPStatus.FORBIDDEN: (Outcome.FAILED, Reason.DENIED),
    HTTPStatus.NOT_FOUND: (Outcome.REFUSED, Reason.MISSING),
    HTTPStatus.CONFLICT: (
        Outcome.FAILED,
        Reason.DISABLED,
    ),  # being deleted, or kept from changing
    HTTPStatus.PRECONDITION_FAILED: (Outcome.FAILED, Reason.DISABLED),  # somebody holds a lease
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (Outcome.REFUSED, Reason.TOO_LARGE),
}


def of_status(status: int, said: str) -> Verdict:
    """What a status of a storage service means."""
    if status not in _BY_STATUS:
        return verdicts.of_status(status, said)
    outcome, reason = _BY_STATUS[HTTPStatus(status)]
    return Verdict(outcome, reason, status, said)
