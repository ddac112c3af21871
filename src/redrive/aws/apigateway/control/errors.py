"""The errors of API Gateway, in its own words; REST and HTTP APIs have the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from redrive.aws.kit.paging import Pages
from redrive.aws.kit.refusals import errors_of, translator
from redrive.aws.wire.errors import AwsError

error: Final = errors_of("apigateway")

_NO_API: Final = "Invalid API identifier specified"


#: The refusal of an invalid request.
bad_request: Final = partial(error, "BadRequestException")
#: The refusal for an absent resource.
not_found: Final = partial(error, "NotFoundException")
#: The refusal of a change that contradicts an existing resource.
conflict: Final = partial(error, "ConflictException")


def not_offered(feature: str) -> AwsError:
    """The refusal of a feature that this server does not have."""
    return bad_request(f"Redrive does not offer {feature}.")


@contextmanager
def absent_as(error: AwsError) -> Iterator[None]:
    """Raise `error` in place of the refusal for an absent API, as most operations do (recorded)."""
    try:
        yield
    except AwsError as refusal:
        if refusal.message.startswith(_NO_API):
            raise error from None
        raise


def no_api(account: str, api_id: str) -> AwsError:
    """The refusal for an API that is not there, or is another account's."""
    return not_found(f"{_NO_API} {account}:{api_id}")


def no_deployment() -> AwsError:
    """The refusal for a deployment that is not there."""
    return not_found("Invalid Deployment identifier specified")


translated: Final = translator()


PAGES: Final = Pages(
    "apigateway",
    lambda _: bad_request("Invalid position parameter"),
    size=25,
    size_max=500,
    size_refusal=lambda _: bad_request("Invalid limit parameter. Limit must be between 1 and 500"),
)
#: The pages of HTTP APIs: everything fits on one unless the caller asks for less.
HTTP_PAGES: Final = Pages(
    "apigatewayv2",
    lambda _: bad_request("Invalid NextToken parameter"),  # chosen
    size=500,
    size_max=500,
    size_refusal=lambda _: bad_request("MaxResults must be between 1 and 500"),  # chosen
)
