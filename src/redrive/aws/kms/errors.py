"""KMS's errors: the recorded texts, and what the engine's refusals are called here."""

from typing import Final

from redrive.access.policy import Decision
from redrive.aws.kit.paging import Pages
from redrive.aws.kms.records import KmsKey
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.model.errors import RedriveError, StoreUnavailable

_UNREACHABLE = (
    "The ciphertext refers to a customer master key that does not exist, does not exist in this region, or you are"
    " not allowed to access."
)


def error(code: str, message: str = "") -> AwsError:
    """One of KMS's errors; see `Service.error`."""
    return Service.load("kms").error(code, message)


def not_valid(message: str) -> AwsError:
    """A parameter is not acceptable."""
    return common("ValidationException", message)


def not_found(message: str) -> AwsError:
    """Nothing has that name."""
    return error("NotFoundException", message)


def disabled(key: KmsKey) -> AwsError:
    """The key is disabled."""
    return error("DisabledException", f"{key.arn} is disabled.")


def wrong_state(key: KmsKey, state: str) -> AwsError:
    """The key's state does not allow it."""
    return error("KMSInvalidStateException", f"{key.arn} is {state}.")


def wrong_usage(key: KmsKey, operation: str) -> AwsError:
    """The key is for another purpose."""
    text = f"{key.arn} key usage is {key.usage} which is not valid for {operation}."
    return error("InvalidKeyUsageException", text)


def unsupported(message: str = "") -> AwsError:
    """The operation cannot be carried out for such a key, or not by this server."""
    return error("UnsupportedOperationException", message)


def bad_ciphertext() -> AwsError:
    """A ciphertext that was damaged, is another's, or has another encryption context; KMS says no more."""
    return error("InvalidCiphertextException")


def incorrect_key() -> AwsError:
    """The ciphertext is not of the key that the request names."""
    text = "The key ID in the request does not identify a CMK that can perform this operation."
    return error("IncorrectKeyException", text)


def denied(principal: str, action: str, arn: str, decision: Decision) -> AwsError:
    """The caller has no permission; KMS answers 400, where most services answer 403."""
    reason = decision.reason(action)
    text = f"User: {principal} is not authorized to perform: {action} on resource: {arn} {reason}"
    return AwsError("AccessDeniedException", text)


def unreachable_key() -> AwsError:
    """A ciphertext's key is not there, or the caller must not know that it is."""
    return AwsError("AccessDeniedException", _UNREACHABLE)


def dry_run() -> AwsError:
    """The request asked to be tried only."""
    text = "The request would have succeeded, but the DryRun option is set."
    return error("DryRunOperationException", text)


def translated(refusal: RedriveError) -> AwsError:
    """Translates a refusal of the engine into the error that KMS has for it."""
    if isinstance(refusal, StoreUnavailable):
        text = "The system timed out while trying to fulfill the request. You can retry the request."
        return AwsError("DependencyTimeoutException", text, status=500, sender=False)
    raise refusal


PAGES: Final = Pages(
    "kms",
    lambda _: error("InvalidMarkerException", "The marker is not one that this service gave out."),
)
