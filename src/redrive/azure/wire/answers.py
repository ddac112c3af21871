"""Answers as Azure's services give them: JSON, or nothing but a status."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson

from redrive.azure.wire.errors import AzureError
from redrive.model.http import Response

CONTENT_TYPE: Final = "application/json; charset=utf-8"
_NO_HEADERS: Final[Mapping[str, str]] = {}


def json_answer(
    value: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] = _NO_HEADERS
) -> Response:
    """An answer with a body."""
    return Response(status, orjson.dumps(value), CONTENT_TYPE, headers)


def empty_answer(status: int = HTTPStatus.OK, headers: Mapping[str, str] = _NO_HEADERS) -> Response:
    """An answer without one."""
    return Response(status, b"", CONTENT_TYPE, headers)


def refusal(error: AzureError) -> Response:
    """An error as an answer."""
    error_members: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.details:
        error_members["details"] = [
            {"code": detail.code, "message": detail.message} for detail in error.details
        ]
    return json_answer({"error": error_members}, error.status, error.headers)
