"""Access tokens of OAuth 2.0: fetched once, and good for all pushes until shortly before they end."""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlencode

import orjson

from redrive.endpoints.http import HttpEndpoint
from redrive.endpoints.http_push import WebhookAnswer
from redrive.endpoints.kept_connection import SingleFlight
from redrive.endpoints.push import verdicts
from redrive.endpoints.verdicts import Verdict
from redrive.engine.ports import PushRequest

_RENEWED_MS: Final = 300_000  # before its end: a push is over after 15 seconds, and clocks differ
_ANSWER_BYTES_MAX: Final = 16_384  # tokens of Google have up to 2,048 characters
_TIMEOUT_MS: Final = 15_000
_FORM: Final = "application/x-www-form-urlencoded"


class AccessToken(NamedTuple):
    """An access token, and the moment it expires (ms)."""

    text: str
    until: int


class LoginRefused(Exception):  # noqa: N818 - an answer, named as a caller says it
    """There is no access token; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.response)
        self.verdict = verdict


class AccessTokens:
    """The tokens of applications, by what they log in with.

    Args:
        now: Milliseconds since the epoch.
        http: Asks the authorities.
    """

    def __init__(self, now: Callable[[], int], http: HttpEndpoint) -> None:
        self._now = now
        self._http = http
        self._fetched: SingleFlight[Hashable, AccessToken] = SingleFlight(self._is_good)

    async def token(
        self,
        login: Hashable,
        url: str,
        form: Callable[[], Mapping[str, str]],
        post: Callable[[str], Awaitable[WebhookAnswer | Verdict]],
    ) -> WebhookAnswer | Verdict:
        """The answer of a service to a request with an access token; repeated with a new one where it is refused.

        Args:
            login: What tells it from others.
            url: The authority's.
            form: What that is asked, where it has to be.
            post: Asks the service, showing this token.

        Raises:
            Refused: The authority gives none, or cannot be asked.
        """
        token = await self._fetched.of(login, lambda: self._fetch(url, form))
        answer = await post(token.text)
        if isinstance(answer, Verdict) or answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        self._fetched.forget(login, token)  # unless another push has fetched the next one already
        token = await self._fetched.of(login, lambda: self._fetch(url, form))
        return await post(token.text)

    async def close(self) -> None:
        """Fetch no more."""
        await self._fetched.close()

    def _is_good(self, token: AccessToken) -> bool:
        return token.until - _RENEWED_MS > self._now()

    async def _fetch(self, url: str, form: Callable[[], Mapping[str, str]]) -> AccessToken:
        body = urlencode(form()).encode()
        request = PushRequest(url, body, _FORM, {}, _TIMEOUT_MS, answer_bytes_max=_ANSWER_BYTES_MAX)
        answer = await self._http.ask(request)
        if isinstance(answer, Verdict):
            raise LoginRefused(answer)
        token = _read(answer.text, self._now()) if answer.status // 100 == 2 else None  # noqa: PLR2004 - a success
        if token is None:
            raise LoginRefused(verdicts.of_login(answer.status, answer.text))
        return token


def _read(text: str, now: int) -> AccessToken | None:
    try:
        document = orjson.loads(text)
        token, seconds = document["access_token"], int(document.get("expires_in", 0))
    except (ValueError, TypeError, KeyError):
        return None
    return AccessToken(token, now + seconds * 1000) if isinstance(token, str) else None
