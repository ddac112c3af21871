"""The path of the certificate that subscribers check notifications by."""

import hashlib
from typing import Final

from redrive.access.signing_pair import SigningPair

_NAME_HEX: Final = 32
PATH_BEGINNING: Final = "/SimpleNotificationService-"


def certificate_path(pair: SigningPair) -> str:
    """The path: `/SimpleNotificationService-<32 hex digits of the certificate's own digest>.pem`."""
    return f"{PATH_BEGINNING}{hashlib.sha256(pair.pem).hexdigest()[:_NAME_HEX]}.pem"
