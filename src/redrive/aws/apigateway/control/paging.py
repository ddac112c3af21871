"""Pages of lists: up to 25 at a time unless the caller asks for more, each naming where the next begins."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.wire.shapes import Structure

_PAGE: Final = 25
_PAGE_MAX: Final = 500


def page(items: Sequence[Any], params: Structure) -> Structure:
    """The answer with one page of what was found.

    Raises:
        AwsError: `BadRequestException`: the position was not given out by this server.
    """
    limit = params.get("limit")
    size = _PAGE if limit is None else limit
    if not 1 <= size <= _PAGE_MAX:
        raise bad_request(f"Invalid limit parameter. Limit must be between 1 and {_PAGE_MAX}")
    try:
        begin = int(urlsafe_b64decode(params.get("position") or "") or b"0")
    except ValueError:
        raise bad_request("Invalid position parameter") from None
    end = max(begin, 0) + size
    answer: Structure = {"items": list(items[max(begin, 0) : end])}
    if end < len(items):
        answer["position"] = urlsafe_b64encode(str(end).encode()).decode()
    return answer
