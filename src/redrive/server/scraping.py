"""Scrapers: who may read the metrics, which name every account's queues and topics."""

import hmac
from ipaddress import ip_address
from typing import Final

from redrive.model.http import Request, Response
from redrive.server.guard import BrowserGuard, RefusalCounter
from redrive.server.owned import json_answer

_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
_WANTED: Final = (
    "Metrics name the queues and topics of all accounts. They are shown to whoever brings the token that the server was"
    " started with (--metrics-token): Authorization: Bearer TOKEN. Without one they are shown to programs on its own"
    " machine, unless it runs functions and --auth is required."
)


class Scrapers:
    """Tells who may read the metrics.

    With a token, whoever brings it. Without one, programs on this machine: not a proxy on it, which says whom it asks
    for, no web page, and nobody where some of these programs are functions of key holders.
    """

    def __init__(
        self, token: str, guard: BrowserGuard, refusals: RefusalCounter, *, runs_functions: bool
    ) -> None:
        """Let these in.

        Args:
            token: What scrapers bring; empty for none.
            guard: Tells what a web page causes.
            refusals: Where others are counted.
            runs_functions: Whether programs of callers run on this machine who may not see everything anyway.
        """
        self._runs_functions = runs_functions
        self._token = token.encode()
        self._guard = guard
        self._refusals = refusals

    def refusal(self, request: Request) -> Response | None:
        """The answer to somebody who may not; None for those who may."""
        if not self._token and not self._runs_functions and _is_local(request):
            return self._guard.refusal(request)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        brought = token.strip() if scheme.lower() == "bearer" else ""
        if self._token and hmac.compare_digest(brought.encode(), self._token):
            return None
        reason = "MetricsTokenInvalid" if brought else "MetricsTokenMissing"
        self._refusals.add(reason, address=request.client_host, identity="")
        refused = json_answer(401, {"message": _WANTED})
        refused.headers = {**refused.headers, "WWW-Authenticate": "Bearer"}
        return refused


def _is_local(request: Request) -> bool:
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ip_address(request.client_host).is_loopback
    except ValueError:
        return False
