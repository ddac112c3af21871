"""Apple's push service: notifications posted over HTTP/2, as an application that shows a token or a certificate."""

import asyncio
import ssl
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from http.client import responses
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

import jwt
import orjson
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from redrive.endpoints.kept_connection import ConnectionPool
from redrive.endpoints.push import verdicts
from redrive.endpoints.push.http2 import ALPN, Http2Answer, Http2Connection, Unprocessed
from redrive.endpoints.push.verdicts import CredentialsUnusable
from redrive.endpoints.verdicts import ACCEPTED, Verdict
from redrive.engine.ports import PushRequest

# A token is good for an hour, and Apple refuses whoever makes a new one more often than every 20 minutes.
_TOKEN_MS: Final = 40 * 60_000
_TOKENS_MAX: Final = 1000
# Less than a push waits: a service that is silent is called anew by the next, not waited for by all until TCP gives up.
_OPEN_SECONDS: Final = 10
_APPLICATIONS_MAX: Final = 1000
_PEM: Final = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n"


class _Place(NamedTuple):
    """The peer of a connection and the application's identity; Apple wants one connection for each application."""

    url: str  # The service's
    principal: str  # A certificate in PEM, or the id of a signing key
    credential: str  # Its private key in PEM; the signing key
    team: str  # Team id of the signing key

    @property
    def certified(self) -> bool:
        """True if it shows a certificate."""
        return "BEGIN CERTIFICATE" in self.principal


class Apns:
    """Posts notifications; see `push.PushEndpoint` for what a request has.

    Args:
        now: Milliseconds since the epoch, for tokens.
        urls: The service's, by what it is called.
        ca_file: Certificates in PEM that are trusted besides the system's.
    """

    def __init__(self, now: Callable[[], int], urls: Mapping[str, str], ca_file: Path | None) -> None:
        self._now = now
        self._urls = urls
        self._ca_file = ca_file
        self._trust = lru_cache(_APPLICATIONS_MAX)(self._context)
        self._tokens: dict[_Place, tuple[str, int]] = {}
        self._connections: ConnectionPool[_Place, Http2Connection] = ConnectionPool()

    async def send(self, push_request: PushRequest) -> Verdict:
        """Post a notification; with a new token where Apple says that ours has expired.

        Raises:
            CredentialsUnusable: The application's credentials are not valid ones.
            OSError: There was no answer.
        """
        headers = push_request.headers
        service = _Place(
            self._urls[headers["service"]],
            headers["principal"],
            headers["credential"],
            headers.get("team", ""),
        )
        headers = self._headers(service, push_request)
        answer = await self._post(service, push_request, headers)
        if verdicts.word_in(answer.body.decode("utf-8", "replace"), "reason") == "ExpiredProviderToken":
            self._discard(service, headers)
            answer = await self._post(service, push_request, self._headers(service, push_request))
        return _verdict(answer)

    async def close(self) -> None:
        """Let go of connections."""
        await self._connections.close()

    async def _post(
        self, service: _Place, push_request: PushRequest, headers: Mapping[str, str]
    ) -> Http2Answer:
        """Post; again where a connection that had answered before did not process it, at last by a new connection."""
        path = f"/3/device/{quote(push_request.endpoint, safe='')}"
        while True:
            connection = await self._connections.of(service, lambda: self._open(service))
            try:
                return await connection.post(path, headers, push_request.body)
            except Unprocessed:
                if not connection.answered:
                    raise

    def _headers(self, service: _Place, push_request: PushRequest) -> dict[str, str]:
        """The headers of a notification: its topic, for an application with a certificate; a token for any other."""
        headers = {name: value for name, value in push_request.headers.items() if name.startswith("apns-")}
        if service.certified:
            topic = headers.get("apns-topic") or _topic_of(service.principal)
            return headers | ({"apns-topic": topic} if topic else {})
        return headers | {"authorization": _bearer(self._token(service))}

    # ---- who we are ------------------------------------------------------------------------------------------

    def _token(self, service: _Place) -> str:
        """A token of the last 40 minutes, the same for all notifications."""
        now = self._now()
        token, made_at = self._tokens.get(service, ("", 0))
        if token and now - made_at < _TOKEN_MS:
            return token
        key = _signing_key(service.credential)
        token = jwt.encode(
            {"iss": service.team, "iat": now // 1000}, key, "ES256", {"kid": service.principal}
        )
        if len(self._tokens) >= _TOKENS_MAX:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[service] = (token, now)
        return token

    def _discard(self, service: _Place, headers: Mapping[str, str]) -> None:
        """Forgets the token in these headers; another push may have made the next one already."""
        token, _ = self._tokens.get(service, ("", 0))
        if headers.get("authorization") == _bearer(token):
            del self._tokens[service]

    def _context(self, certificate: str, key: str) -> ssl.SSLContext:
        """The TLS context for HTTP/2 with a client's certificate, if there is one; `ca_file` is trusted too."""
        context = ssl.create_default_context()
        context.set_alpn_protocols([ALPN])
        if self._ca_file is not None:
            context.load_verify_locations(self._ca_file)
        if certificate:
            _load_certificate(context, certificate, key)
        return context

    # ---- connections -----------------------------------------------------------------------------------------

    async def _open(self, service: _Place) -> Http2Connection:
        """Connect to the service of an application."""
        url = urlsplit(service.url)
        secure = url.scheme == "https"
        certificate = (service.principal, service.credential) if service.certified else ("", "")
        async with asyncio.timeout(_OPEN_SECONDS):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Http2Connection(url.netloc, secure=secure),
                url.hostname or "",
                url.port or (443 if secure else 80),
                ssl=self._trust(*certificate) if secure else None,
            )
        return connection


def _bearer(token: str) -> str:
    return f"bearer {token}"


def _verdict(answer: Http2Answer) -> Verdict:
    """The verdict on Apple's answer; a success keeps the notification's id."""
    text = answer.body.decode("utf-8", "replace")
    if answer.status != HTTPStatus.OK:
        return verdicts.of_apns(answer.status, text or responses.get(answer.status, ""))
    identifiers = orjson.dumps({"apns-id": answer.headers.get("apns-id", "")}).decode()
    return ACCEPTED.verdict(answer.status, identifiers)


@lru_cache(_APPLICATIONS_MAX)
def _signing_key(text: str) -> EllipticCurvePrivateKey:
    """A signing key as Apple hands it out (.p8), with or without the lines around it."""
    pem = text if "BEGIN" in text else _PEM.format(text.strip())
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError):
        raise CredentialsUnusable("The credential is no signing key (.p8) of Apple's") from None
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise CredentialsUnusable(
            "The credential is no signing key (.p8) of Apple's: those are of the curve P-256"
        )
    return key


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Have a context present a certificate. The library reads it from a file alone, which is removed at once."""
    with tempfile.NamedTemporaryFile("w", prefix="redrive-", suffix=".pem") as file:
        file.write(f"{certificate}\n{key}\n")
        file.flush()
        try:
            context.load_cert_chain(file.name, password="")
        except (ssl.SSLError, ValueError):
            raise CredentialsUnusable(
                "The principal and the credential are no certificate and its key"
            ) from None


@lru_cache(_APPLICATIONS_MAX)
def _topic_of(certificate: str) -> str:
    """The topic that a certificate is for: its subject's user id."""
    try:
        subject = x509.load_pem_x509_certificate(certificate.encode()).subject
    except ValueError:
        raise CredentialsUnusable("The principal is no certificate") from None
    attributes = subject.get_attributes_for_oid(NameOID.USER_ID)
    return str(attributes[0].value) if attributes else ""
