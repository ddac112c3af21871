"""Mobile push over HTTP with access tokens of OAuth 2.0: Firebase Cloud Messaging (HTTP v1) and Amazon Device Messaging.

Firebase is called as a service account, Amazon as an application with an id and a secret. A token is fetched once, and is
good for all pushes until shortly before it ends.
"""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from redrive.endpoints.http import HttpEndpoint
from redrive.endpoints.http_connection import WebhookAnswer
from redrive.endpoints.kept_connection import SingleFlight
from redrive.endpoints.push import verdicts
from redrive.endpoints.push.verdicts import CredentialsUnusable
from redrive.endpoints.verdicts import Verdict
from redrive.engine.ports import PushRequest

_RENEWED_MS: Final = 300_000  # before its end: a push is over after 15 seconds, and clocks differ
_TOKEN_ANSWER_BYTES_MAX: Final = 16_384  # tokens of Google have up to 2,048 characters
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
        self._by_login: SingleFlight[Hashable, AccessToken] = SingleFlight(self._is_good)

    async def token(
        self,
        login: Hashable,
        url: str,
        form: Callable[[], Mapping[str, str]],
        post: Callable[[str], Awaitable[WebhookAnswer | Verdict]],
    ) -> WebhookAnswer | Verdict:
        """The answer of a service to a request with an access token; repeated with a new one where it is refused.

        Args:
            login: The key that the token is remembered by.
            url: The authority's.
            form: Makes the form that the authority is sent for a new token.
            post: Sends the request to the service with this token.

        Raises:
            LoginRefused: The authority gives none, or cannot be asked.
        """
        token = await self._by_login.of(login, lambda: self._fetch(url, form))
        answer = await post(token.text)
        if isinstance(answer, Verdict) or answer.status != HTTPStatus.UNAUTHORIZED:
            return answer
        self._by_login.forget(login, token)  # unless another push has fetched the next one already
        token = await self._by_login.of(login, lambda: self._fetch(url, form))
        return await post(token.text)

    async def close(self) -> None:
        """Fetch no more."""
        await self._by_login.close()

    def _is_good(self, token: AccessToken) -> bool:
        return token.until - _RENEWED_MS > self._now()

    async def _fetch(self, url: str, form: Callable[[], Mapping[str, str]]) -> AccessToken:
        """Ask the authority for a token."""
        body = urlencode(form()).encode()
        request = PushRequest(url, body, _FORM, {}, _TIMEOUT_MS, answer_bytes_max=_TOKEN_ANSWER_BYTES_MAX)
        answer = await self._http.ask(request)
        if isinstance(answer, Verdict):
            raise LoginRefused(answer)
        token = _token_of(answer.text, self._now()) if answer.status // 100 == 2 else None  # noqa: PLR2004 - a success
        if token is None:
            raise LoginRefused(verdicts.of_login(answer.status, answer.text))
        return token


def _token_of(text: str, now: int) -> AccessToken | None:
    """The token in an authority's answer, with the moment (ms) at which it ends; None: there is none."""
    try:
        document = orjson.loads(text)
        token, seconds = document["access_token"], int(document.get("expires_in", 0))
    except (ValueError, TypeError, KeyError):
        return None
    return AccessToken(token, now + seconds * 1000) if isinstance(token, str) else None


_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
_ASSERTION_SECONDS: Final = 3600  # the longest that Google accepts
_ACCOUNTS_MAX: Final = 1000
_ANSWER_BYTES_MAX: Final = 16_384  # an error says in what field, several times over
_JSON: Final = "application/json; charset=UTF-8"


class _Account(NamedTuple):
    """A service account, of the file that Google hands out.

    The file's `token_uri` is not asked: whoever may register an application could have this server call anything.
    """

    project: str
    email: str
    key_id: str
    key: str


class Fcm:
    """Posts messages; see `push.PushEndpoint` for what a request has.

    Args:
        now: Milliseconds since the epoch, for tokens.
        http: Asks by HTTP.
        tokens: Access tokens.
        urls: The service's and its authority's, by what they are called.
    """

    def __init__(
        self, now: Callable[[], int], http: HttpEndpoint, tokens: AccessTokens, urls: Mapping[str, str]
    ) -> None:
        self._now = now
        self._http = http
        self._tokens = tokens
        self._url = urls["fcm"]
        self._authority = urls["google_oauth"]

    async def send(self, push_request: PushRequest) -> Verdict:
        """Post it.

        Raises:
            CredentialsUnusable: The credential is not a service account's file.
            LoginRefused: Google gives the account no access token.
        """
        account = _read(push_request.headers["credential"])
        url = f"{self._url}/v1/projects/{quote(account.project, safe='')}/messages:send"

        async def post(token: str) -> WebhookAnswer | Verdict:
            headers = {"Authorization": f"Bearer {token}"}
            request = PushRequest(
                url,
                push_request.body,
                _JSON,
                headers,
                push_request.timeout_ms,
                answer_bytes_max=_ANSWER_BYTES_MAX,
            )
            return await self._http.ask(request)

        answer = await self._tokens.token(account, self._authority, lambda: self._login(account), post)
        return answer if isinstance(answer, Verdict) else verdicts.of_fcm(answer.status, answer.text)

    def _login(self, account: _Account) -> dict[str, str]:
        """The form by which a service account asks Google for a token: a signed assertion (RFC 7523)."""
        now = self._now() // 1000
        claims = {
            "iss": account.email,
            "scope": _SCOPE,
            "aud": self._authority,
            "iat": now,
            "exp": now + _ASSERTION_SECONDS,
        }
        assertion = jwt.encode(claims, _private(account.key), "RS256", {"kid": account.key_id})
        return {"grant_type": _GRANT, "assertion": assertion}


@lru_cache(_ACCOUNTS_MAX)
def _read(text: str) -> _Account:
    """Read a service account's file."""
    try:
        file: dict[str, Any] = orjson.loads(text)
        account = _Account(
            *(file[name] for name in ("project_id", "client_email", "private_key_id", "private_key"))
        )
    except (ValueError, TypeError, KeyError):
        account = None
    if account is None or not all(isinstance(part, str) for part in account):
        raise CredentialsUnusable(
            "The credential is no service account's file in JSON, which FCM's HTTP v1 wants"
        )
    return account


@lru_cache(_ACCOUNTS_MAX)
def _private(pem: str) -> RSAPrivateKey:
    """Read a private key in PEM."""
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise CredentialsUnusable("The service account's private_key is no RSA key in PEM")
    return key


_PLAIN_JSON: Final = "application/json"
_TYPES: Final = {
    "X-Amzn-Type-Version": "com.amazon.device.messaging.ADMMessage@1.0",
    "X-Amzn-Accept-Type": "com.amazon.device.messaging.ADMSendResult@1.0",
    "Accept": _PLAIN_JSON,
}


class Adm:
    """Posts messages; see `push.PushEndpoint` for what a request has.

    Args:
        http: Asks by HTTP.
        tokens: Access tokens.
        urls: The service's and its authority's, by what they are called.
    """

    def __init__(self, http: HttpEndpoint, tokens: AccessTokens, urls: Mapping[str, str]) -> None:
        self._http = http
        self._tokens = tokens
        self._url = urls["adm"]
        self._authority = urls["adm_oauth"]

    async def send(self, push_request: PushRequest) -> Verdict:
        """Post it; the identifier `token` of a success is the device's token from now on.

        Raises:
            LoginRefused: The application gets no access token.
        """
        url = f"{self._url}/messaging/registrations/{quote(push_request.endpoint, safe='')}/messages"

        async def post(token: str) -> WebhookAnswer | Verdict:
            headers = {"Authorization": f"Bearer {token}", **_TYPES}
            return await self._http.ask(
                PushRequest(url, push_request.body, _PLAIN_JSON, headers, push_request.timeout_ms)
            )

        login = (push_request.headers["principal"], push_request.headers["credential"])
        answer = await self._tokens.token(login, self._authority, lambda: _form(*login), post)
        if isinstance(answer, Verdict):
            return answer
        token = verdicts.word_in(answer.text, "registrationID")
        identifiers = (("token", token),) if token else ()
        return replace(verdicts.of_adm(answer.status, answer.text), identifiers=identifiers)


def _form(client_id: str, secret: str) -> dict[str, str]:
    """The form by which an application asks Amazon for a token (RFC 6749, 4.4)."""
    return {
        "grant_type": "client_credentials",
        "scope": "messaging:push",
        "client_id": client_id,
        "client_secret": secret,
    }
