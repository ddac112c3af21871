"""Conversions of bodies between bytes and base64, as `contentHandling` and an API's binary media types ask for.

https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-payload-encodings-workflow.html
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from redrive.aws.apigateway.control.gateway_responses import Refusal

TO_BINARY: Final = "CONVERT_TO_BINARY"
TO_TEXT: Final = "CONVERT_TO_TEXT"
HANDLINGS: Final = (TO_BINARY, TO_TEXT)
_ANY_TYPE: Final = "*/*"


def is_binary(types: Sequence[str], kind: str) -> bool:
    """True if a media type is among an API's binary ones."""
    family = f"{kind.partition('/')[0]}/*"
    return any(each in (_ANY_TYPE, kind, family) for each in types)


def encoded(body: bytes, handling: str | None, *, is_binary: bool) -> bytes:
    """A body with its bytes as base64, where they shall be text.

    Args:
        body: As it came.
        handling: `contentHandling`; None: the body is passed on as it is.
        is_binary: Whether its type is among the API's binary ones: what is text stays text.
    """
    return base64.b64encode(body) if handling == TO_TEXT and is_binary else body


def decoded(body: bytes, handling: str | None, *, is_binary: bool) -> bytes:
    """A body of base64 as the bytes that it stands for, where it shall be binary; arguments as of `encoded`.

    Raises:
        Refusal: The text is not base64.
    """
    if handling != TO_BINARY or is_binary:
        return body
    try:
        return base64.b64decode(body.strip(), validate=True)
    except binascii.Error:
        raise Refusal("API_CONFIGURATION_ERROR", reason="Unable to base64 decode the body.") from None
