"""The errors of API Gateway, in its own words; REST and HTTP APIs have the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Service
from redrive.model.errors import RedriveError

_NO_API: Final = "Invalid API identifier specified"


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


@contextmanager
def absent_as(told: AwsError) -> Iterator[None]:
    """Tell of an API that is absent by the refusal for what is below it, as most operations do (recorded)."""
    try:
        yield
    except AwsError as refusal:
        if refusal.message.startswith(_NO_API):
            raise told from None
        raise


def no_api(account: str, api_id: str) -> AwsError:
    """The refusal for an API that is not there, or is another account's."""
    return not_found(f"{_NO_API} {account}:{api_id}")


def translated(refusal: RedriveError) -> AwsError:
    """Raises a refusal of the engine as it is: API Gateway asks it for nothing that it refuses."""
    raise refusal


PAGES: Final = Pages(
    "apigateway",
    lambda _: bad_request("Invalid position parameter"),
    size=25,
    size_max=500,
    size_refusal=lambda _: bad_request("Invalid limit parameter. Limit must be between 1 and 500"),
)
#: Of HTTP APIs, in whose lists everything fits on one page unless the caller asks for less.
HTTP_PAGES: Final = Pages(
    "apigatewayv2",
    lambda _: bad_request("Invalid NextToken parameter"),  # chosen
    size=500,
    size_max=500,
    size_refusal=lambda _: bad_request("MaxResults must be between 1 and 500"),  # chosen
)
