"""Attempts that failed, with the error in the form that delivery logs have it in."""

from http import HTTPStatus
from typing import Final

import orjson

from redrive.aws.wire.errors import AwsError
from redrive.model.attempt import Attempt, AttemptResult, Reason

_TEXT_CHARS_MAX: Final = 400  # an attempt keeps 1,024 characters, and a character may take two in JSON


def failure(result: AttemptResult, reason: Reason, status: int, code: str, text: str) -> Attempt:
    """An attempt that failed.

    Args:
        result: Whether a further attempt may succeed.
        reason: Why.
        status: Of the error.
        code: Its name.
        text: What it says.
    """
    message = orjson.dumps({"ErrorCode": code, "ErrorMessage": text[:_TEXT_CHARS_MAX]}).decode()
    return Attempt(result, reason, status, message, 0)


def missing(arn: str) -> Attempt:
    """The function is not there."""
    text = f"Function not found: {arn}"
    return failure(
        AttemptResult.REFUSED, Reason.MISSING, HTTPStatus.NOT_FOUND, "ResourceNotFoundException", text
    )


def unreadable(error: AwsError) -> Attempt:
    """The key of the function's variables cannot be used: a fault of the service's, which is tried for hours."""
    return failure(AttemptResult.FAILED, Reason.UNMADE, HTTPStatus.BAD_GATEWAY, error.code, error.message)


def throttled(result: AttemptResult, reason: Reason) -> Attempt:
    """No environment may be used for it."""
    return failure(result, reason, HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequestsException", "Rate Exceeded.")
