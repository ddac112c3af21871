"""The errors of API Gateway, in its own words; REST and HTTP APIs have the same."""

from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.model.errors import RedriveError


def error(code: str, text: str) -> AwsError:
    """A refusal of the service's own."""
    return Service.load("apigateway").error(code, text)


def bad_request(text: str) -> AwsError:
    """The refusal of what a caller gave."""
    return error("BadRequestException", text)


def not_found(text: str) -> AwsError:
    """The refusal for what is not there."""
    return error("NotFoundException", text)


def conflict(text: str) -> AwsError:
    """The refusal of what contradicts what is there."""
    return error("ConflictException", text)


def unoffered(what: str) -> AwsError:
    """The refusal of what this server does not have."""
    return bad_request(f"Redrive does not offer {what}.")


def no_api(account: str, api_id: str) -> AwsError:
    """The refusal for an API that is not there, or is another account's."""
    return not_found(f"Invalid API identifier specified {account}:{api_id}")


def translated(refusal: RedriveError) -> AwsError:
    """Raises a refusal of the engine as it is: API Gateway asks it for nothing that it refuses."""
    raise refusal
