"""The engine's refusals in the words of each service."""

import pytest

from redrive.aws.kit.service import service_of
from redrive.aws.services import FOLDERS
from redrive.model.errors import StoreUnavailable

# Codes that clients repeat a call for, of those services that have one of their own.
CODES = {
    "iam": ("ServiceFailureException", 500),
    "kms": ("DependencyTimeoutException", 500),
    "lambda": ("ServiceException", 500),
    "s3": ("ServiceUnavailable", 503),
}


@pytest.mark.parametrize("service", FOLDERS)
def test_a_lost_store_is_an_answer_that_clients_repeat(service: str) -> None:
    error = service_of(service).translated(StoreUnavailable("postgresql://db.example did not answer"))
    assert (error.code, error.status) == CODES.get(service, ("ServiceUnavailableException", 503))
    assert "db.example" not in error.message
