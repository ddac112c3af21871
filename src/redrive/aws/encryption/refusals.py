"""Refusals of keys, in the words of the services whose messages they encrypt."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import orjson

from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.errors import KeyUnusable


class RefusalTexts(NamedTuple):
    """The names that a refusal of KMS has elsewhere."""

    sqs: str  # The shape at SQS
    sqs_query: str  # Its code in Query, and in the log of deliveries
    sns: str  # The shape at SNS
    reason: Reason  # Reason of a failed attempt


_STATE: Final = RefusalTexts(
    "KmsInvalidState", "KMS.InvalidStateException", "KMSInvalidStateException", Reason.DISABLED
)
_WORDS: Final[Mapping[str, RefusalTexts]] = {
    "AccessDeniedException": RefusalTexts(
        "KmsAccessDenied", "KMS.AccessDeniedException", "KMSAccessDeniedException", Reason.DENIED
    ),
    "DisabledException": RefusalTexts(
        "KmsDisabled", "KMS.DisabledException", "KMSDisabledException", Reason.DISABLED
    ),
    "KMSInvalidStateException": _STATE,
    "NotFoundException": RefusalTexts(
        "KmsNotFound", "KMS.NotFoundException", "KMSNotFoundException", Reason.MISSING
    ),
    "InvalidKeyUsageException": RefusalTexts(
        "KmsInvalidKeyUsage", "KMS.InvalidKeyUsageException", "KMSInvalidStateException", Reason.CLIENT_ERROR
    ),
    "ThrottlingException": RefusalTexts(
        "KmsThrottled", "KMS.ThrottlingException", "KMSThrottlingException", Reason.THROTTLED
    ),
}


def words(refused: KeyUnusable) -> RefusalTexts:
    """The names of a refusal; a ciphertext that KMS cannot read is its key's invalid state."""
    return _WORDS.get(refused.code, _STATE)


def text(refused: KeyUnusable, request_id: str = "") -> str:
    """The text of a refusal, as SQS and SNS word it for callers."""
    return _text(str(refused), refused.code, request_id)


def attempt(refused: KeyUnusable) -> Attempt:
    """The result of handing a message to a queue whose key the sender may not use; a service is told no reason."""
    texts = words(refused)
    response = {
        "ErrorCode": texts.sqs_query,
        "ErrorMessage": _text("null", refused.code, ""),
        "sqsRequestId": "Unrecoverable",
    }
    result = AttemptResult.FAILED if texts.reason is Reason.THROTTLED else AttemptResult.REFUSED
    return Attempt(result, texts.reason, 400, orjson.dumps(response).decode())


def _text(message: str, code: str, request_id: str) -> str:
    return (
        f"{message} (Service: AWSKMS; Status Code: 400; Error Code: {code or 'KMSInvalidStateException'};"
        f" Request ID: {request_id}; Proxy: null)"
    )
