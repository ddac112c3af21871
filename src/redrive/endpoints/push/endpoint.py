"""Mobile push: notifications handed to the services of Apple, Google and Amazon, who have a line to the device."""

import asyncio
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from typing_extensions import override

from redrive.endpoints.http import HttpEndpoint, HttpPolicy
from redrive.endpoints.push import verdicts
from redrive.endpoints.push.web import AccessTokens, Adm, Fcm, LoginRefused
from redrive.endpoints.verdicts import TimedEndpoint, Verdict
from redrive.engine.ports import PushRequest

#: Where the services are, and the authorities that give two of them access tokens.
URLS: Final[Mapping[str, str]] = {
    "adm": "https://api.amazon.com",
    "adm_oauth": "https://api.amazon.com/auth/O2/token",
    "apns": "https://api.push.apple.com",
    "apns_sandbox": "https://api.sandbox.push.apple.com",
    "fcm": "https://fcm.googleapis.com",
    "google_oauth": "https://oauth2.googleapis.com/token",
}


_APPLE: Final = frozenset({"apns", "apns_sandbox"})


class _Service(Protocol):
    async def send(self, push_request: PushRequest) -> Verdict: ...


class _ClosedService(_Service, Protocol):
    async def close(self) -> None: ...


class PushEndpoint(TimedEndpoint):
    """Hands notifications to push services.

    A request's endpoint is the device's token and its body what the service gets. Its headers say which service, and who
    sends: `service` (`adm`, `apns`, `apns_sandbox` or `fcm`), `credential`, and where the service wants them `principal`
    and `team`; those whose names begin with `apns-` go to Apple beside the body. They hold secrets.

    An attempt's reason is MISSING where the token is not a device's, DENIED where the service does not know the
    application by its credentials. An identifier `token` is the device's token from then on.

    Args:
        now: Milliseconds since the epoch, as the services have it: for durations and for tokens.
        rng: As `HttpEndpoint` has it.
        urls: Where services are that are not where URLS says.
        ca_file: Certificates in PEM that are trusted besides the system's.
    """

    def __init__(
        self,
        now: Callable[[], int],
        rng: random.Random,
        urls: Mapping[str, str] | None = None,
        ca_file: Path | None = None,
    ) -> None:
        super().__init__(now)
        places = {**URLS, **(urls or {})}
        self._http = HttpEndpoint(now, rng, HttpPolicy(ca_file=ca_file))
        self._tokens = AccessTokens(now, self._http)
        self._services: dict[str, _Service] = {
            "adm": Adm(self._http, self._tokens, places),
            "fcm": Fcm(now, self._http, self._tokens, places),
        }
        self._new_apns = partial(_apns, now, places, ca_file)
        self._apns: _ClosedService | None = None

    @override
    async def close(self) -> None:
        """Let go of connections."""
        await self._tokens.close()
        if self._apns is not None:
            await self._apns.close()
        await self._http.close()

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """Send to the service that the push names."""
        try:
            async with asyncio.timeout(push_request.timeout_ms / 1000):
                return await self._service(push_request.headers["service"]).send(push_request)
        except LoginRefused as refusal:
            return refusal.verdict
        except (OSError, ValueError) as error:
            return verdicts.of_failure(error)

    def _service(self, name: str) -> _Service:
        """The service of this name; Apple's, one for all its names, is made when it is first needed."""
        if name not in _APPLE:
            return self._services[name]
        if self._apns is None:
            self._apns = self._new_apns()
        return self._apns


def _apns(now: Callable[[], int], urls: Mapping[str, str], ca_file: Path | None) -> _ClosedService:
    from redrive.endpoints.push.apns import Apns  # noqa: PLC0415 - h2 would take 70 ms of every server's start

    return Apns(now, urls, ca_file)
