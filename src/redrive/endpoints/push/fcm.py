"""Firebase Cloud Messaging: messages posted by its HTTP v1 interface, as a service account."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from redrive.endpoints.http import HttpEndpoint
from redrive.endpoints.http_push import WebhookAnswer
from redrive.endpoints.push import verdicts
from redrive.endpoints.push.login import AccessTokens
from redrive.endpoints.push.verdicts import CredentialsUnusable
from redrive.endpoints.verdicts import Verdict
from redrive.engine.ports import PushRequest

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
            Refused: Google gives the account no access token.
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
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise CredentialsUnusable("The service account's private_key is no RSA key in PEM")
    return key
