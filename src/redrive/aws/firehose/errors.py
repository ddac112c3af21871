"""Firehose's errors, and what the engine's refusals are called here."""

from typing import Final

from redrive.aws.kit.refusals import errors_of, translator
from redrive.aws.wire.errors import AwsError, common
from redrive.model.errors import KeyUnusable, StoreUnavailable
from redrive.model.names import ResourceName

error: Final = errors_of("firehose")


def invalid(message: str) -> AwsError:
    """A parameter is not acceptable."""
    return error("InvalidArgumentException", message)


def unoffered(what: str) -> AwsError:
    """A parameter asks for something that this server does not do."""
    return invalid(f"Redrive does not offer {what}.")


def no_such_stream(name: ResourceName) -> AwsError:
    """The delivery stream is not there."""
    return error("ResourceNotFoundException", f"Firehose {name.name} under account {name.account} not found.")


def slow_down() -> AwsError:
    """The stream takes no records now; clients try again."""
    return error("ServiceUnavailableException", "Slow down.")


translated: Final = translator(
    (
        StoreUnavailable,
        lambda _: common("ServiceUnavailableException", "The service cannot complete the request."),
    ),
    (KeyUnusable, lambda refusal: error("InvalidKMSResourceException", str(refusal))),
)


def unassumable(role: str) -> AwsError:
    """The refusal of a role that Firehose cannot act as."""
    return invalid(f"Firehose is unable to assume role {role}. Please check the role provided.")
