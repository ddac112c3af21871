"""Links out of a subscription: who follows one proves by its token that this server sent it.

A subscription's ARN proves nothing: it stands in lists, in logs and in every message, and once could be worked out.
"""

from typing import Final

from redrive.access.secret import InstallationSecret

_PURPOSE: Final = "unsubscribe links"


class UnsubscribeTokens:
    """The tokens of links; nothing of them is kept."""

    def __init__(self, secret: InstallationSecret) -> None:
        self._secret = secret

    def token(self, subscription: str) -> str:
        """The token for a subscription's ARN."""
        return self._secret.tag(_PURPOSE, subscription)

    def proves(self, subscription: str, token: str) -> bool:
        """True if a token is that ARN's."""
        return self._secret.is_tag(_PURPOSE, subscription, token)
