"""JSON Web Tokens that are signed with secrets of this installation, and read here again."""

from collections.abc import Mapping
from typing import Any, Final

import jwt

ALGORITHM: Final = "HS256"
# Whoever asks looks at the claims, by the clock that counts for them: PyJWT would take the machine's.
UNCHECKED: Final[jwt.types.Options] = {
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_sub": False,
    "verify_jti": False,
}


def signed_claims(token: str, key: bytes) -> Mapping[str, Any] | None:
    """The claims of a token, none of which is checked; None if the key has not signed it."""
    try:
        return jwt.decode(token, key, [ALGORITHM], UNCHECKED)
    except jwt.InvalidTokenError:
        return None
