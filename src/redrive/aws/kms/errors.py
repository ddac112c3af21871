"""The errors of KMS, with recorded texts."""

from functools import partial
from typing import Final

from redrive.access.policy import Decision
from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, not_authorized, translator
from redrive.aws.kms.records import KmsKey
from redrive.aws.wire.errors import AwsError, common
from redrive.model.errors import StoreUnavailable

_UNREACHABLE = (
    "The ciphertext refers to a customer master key that does not exist, does not exist in this region, or you are"
    " not allowed to access."
)


error: Final = errors_of("kms")


#: A parameter is not acceptable.
not_valid: Final = partial(common, "ValidationException")
#: There is no such key, alias or grant.
not_found: Final = partial(error, "NotFoundException")


def disabled(key: KmsKey) -> AwsError:
    """The key is disabled."""
    return error("DisabledException", f"{key.arn} is disabled.")


def wrong_state(key: KmsKey, state: str) -> AwsError:
    """The key's state does not allow the operation."""
    return error("KMSInvalidStateException", f"{key.arn} is {state}.")


def wrong_usage(key: KmsKey, operation: str) -> AwsError:
    """The key is for another purpose."""
    text = f"{key.arn} key usage is {key.usage} which is not valid for {operation}."
    return error("InvalidKeyUsageException", text)


#: The operation cannot be carried out for such a key, or not by this server.
unsupported: Final = partial(error, "UnsupportedOperationException")


def bad_ciphertext() -> AwsError:
    """The ciphertext is damaged, of another key, or has another encryption context; KMS does not say which."""
    return error("InvalidCiphertextException")


def incorrect_key() -> AwsError:
    """The ciphertext belongs to another key than the request names."""
    text = "The key ID in the request does not identify a CMK that can perform this operation."
    return error("IncorrectKeyException", text)


def denied(principal: str, action: str, arn: str, decision: Decision) -> AwsError:
    """The caller has no permission; KMS answers 400, where most services answer 403."""
    return AwsError("AccessDeniedException", not_authorized(principal, action, arn, decision.reason(action)))


def unreachable_key() -> AwsError:
    """The key of a ciphertext does not exist, or the caller may not know that it does."""
    return AwsError("AccessDeniedException", _UNREACHABLE)


def dry_run() -> AwsError:
    """The request is a dry run, which succeeded."""
    text = "The request would have succeeded, but the DryRun option is set."
    return error("DryRunOperationException", text)


def timed_out() -> AwsError:
    """The store is unavailable, which KMS calls a dependency."""
    text = "The system timed out while trying to fulfill the request. You can retry the request."
    return AwsError("DependencyTimeoutException", text, status=500, sender=False)


translated: Final = translator((StoreUnavailable, lambda _: timed_out()))
PAGES: Final = Pages(
    "kms", lambda _: error("InvalidMarkerException", "The marker is not one that this service gave out.")
)
