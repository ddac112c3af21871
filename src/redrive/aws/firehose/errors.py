"""Firehose's errors, and what the engine's refusals are called here."""

from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Service
from redrive.model.errors import KeyUnusable, RedriveError, StoreUnavailable
from redrive.model.names import ResourceName


def error(code: str, message: str) -> AwsError:
    """One of Firehose's errors; see `Service.error`."""
    return Service.load("firehose").error(code, message)


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


def translated(refusal: RedriveError) -> AwsError:
    """Translates a refusal of the engine into the error that Firehose has for it."""
    if isinstance(refusal, StoreUnavailable):
        return common("ServiceUnavailableException", "The service cannot complete the request.")
    if isinstance(refusal, KeyUnusable):
        return error("InvalidKMSResourceException", str(refusal))
    raise refusal


def unassumable(role: str) -> AwsError:
    """The refusal of a role that Firehose cannot act as."""
    return invalid(f"Firehose is unable to assume role {role}. Please check the role provided.")
