"""Push services of a test's own: Apple's over HTTP/2, Google's and Amazon's with their authorities.

They answer in a thread beside, look at whoever comes as the real ones do (signatures included), and remember what they
were given. What they say is a script, which a test changes.
"""

import asyncio
import contextlib
import queue
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from typing_extensions import override

from tests.services.answering import answering

KEY_ID, TEAM, BUNDLE = "KEY1234567", "TEAM123456", "com.example.rentals"
PROJECT, ACCOUNT = "rentals", "push@rentals.iam.gserviceaccount.com"


@dataclass(frozen=True)
class Pushed:
    """One notification that a service was given."""

    token: str
    body: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def document(self) -> Any:
        return orjson.loads(self.body)


@dataclass(frozen=True)
class Saying:
    """A service's answer: a status and a document; a status of 0 closes the connection instead."""

    status: int = 200
    document: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


Script = Callable[[Pushed], Saying | None]  # None: never anything


@cache
def signing_key() -> ec.EllipticCurvePrivateKey:
    """Of an application at Apple."""
    return ec.generate_private_key(ec.SECP256R1())


@cache
def account_key() -> rsa.RSAPrivateKey:
    """Of a service account at Google."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    """A key as its owner keeps it."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def service_account(**changed: str) -> str:
    """The file that Google hands out for a service account."""
    file = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "k1",
        "private_key": pem(account_key()),
        "client_email": ACCOUNT,
        "token_uri": "http://169.254.169.254/never-asked",
    }
    return orjson.dumps(file | changed).decode()


class Service:
    """Base of the push services: a script, and a memory."""

    def __init__(self) -> None:
        self.pushed: queue.Queue[Pushed] = queue.Queue()
        self.script: Script = lambda _: Saying()
        self.url = ""

    def say(self, status: int, document: Any = None, **headers: str) -> None:
        """Answer so from now on."""
        saying = Saying(status, document if document is not None else {}, headers)
        self.script = lambda _: saying

    def next(self) -> Pushed:
        """The next notification; a test fails that waits for 10 seconds."""
        return self.pushed.get(timeout=10)

    @property
    def is_idle(self) -> bool:
        return self.pushed.empty()

    def take(self, pushed: Pushed) -> Saying | None:
        """Remember it, and answer by the script."""
        self.pushed.put(pushed)
        return self.script(pushed)


# ---- Apple ---------------------------------------------------------------------------------------------------------


class Apple(Service):
    """APNs: HTTP/2 with or without TLS, and callers with tokens or certificates."""

    def __init__(self, tls: ssl.SSLContext | None = None, streams_max: int = 100) -> None:
        super().__init__()
        self.tls = tls
        self.streams_max = streams_max
        self.connections: list[AppleConnection] = []
        self.opened = 0
        self.issued_ats: list[int] = []

    def refusal(self, headers: dict[str, str], *, certified: bool) -> Saying | None:
        """Return the reason to refuse the caller."""
        if certified:
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        try:
            claims = jwt.decode(token, signing_key().public_key(), ["ES256"])
        except jwt.InvalidTokenError:
            return Saying(403, {"reason": "InvalidProviderToken"})
        if (scheme, jwt.get_unverified_header(token)["kid"], claims["iss"]) != ("bearer", KEY_ID, TEAM):
            return Saying(403, {"reason": "InvalidProviderToken"})
        self.issued_ats.append(claims["iat"])
        return None

    @contextlib.contextmanager
    def serving(self) -> Iterator["Apple"]:
        """Answer as long as the block."""
        ready, loop, over = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

        async def serve() -> None:
            server = await loop.create_server(lambda: AppleConnection(self), "127.0.0.1", 0, ssl=self.tls)
            host = "https://localhost" if self.tls else "http://127.0.0.1"
            self.url = f"{host}:{server.sockets[0].getsockname()[1]}"
            ready.set()
            await over.wait()
            server.close()
            for connection in list(self.connections):
                connection.abort()
            await server.wait_closed()

        def run() -> None:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(over.set)
            thread.join()


class AppleConnection(asyncio.Protocol):
    """One connection to it; what it does with a finished request is `answer`."""

    def __init__(self, apple: Apple) -> None:
        self.apple = apple
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests: dict[int, tuple[dict[str, str], bytearray]] = {}
        self.transport: Any = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.apple.connections.append(self)
        self.apple.opened += 1
        limits = {SettingCodes.MAX_CONCURRENT_STREAMS: self.apple.streams_max}
        self.h2.local_settings = Settings(client=False, initial_values=limits)
        self.h2.initiate_connection()
        self.flush()

    @override
    def data_received(self, data: bytes) -> None:
        try:
            events = self.h2.receive_data(data)
        except ProtocolError:
            self.flush()
            self.transport.close()
            return
        for event in events:
            match event:
                case RequestReceived():
                    head = {str(name): str(value) for name, value in event.headers}
                    self.requests[event.stream_id] = (head, bytearray())
                case DataReceived():
                    self.requests[event.stream_id][1].extend(event.data)
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case StreamEnded():
                    self.answer(event.stream_id)
                case StreamReset():
                    self.requests.pop(event.stream_id, None)
                case ConnectionTerminated():
                    self.transport.close()
        self.flush()

    def answer(self, stream: int) -> None:
        headers, body = self.requests.pop(stream)
        assert (headers[":method"], headers[":path"][:10]) == ("POST", "/3/device/")
        tls = self.transport.get_extra_info("ssl_object")
        certified = tls is not None and bool(tls.getpeercert())
        token = unquote(headers[":path"][10:])
        saying = self.apple.refusal(headers, certified=certified)
        if saying is None:
            saying = self.apple.take(Pushed(token, bytes(body).decode(), headers))
        if saying is not None and not self.transport.is_closing():
            self.say(stream, saying)

    def say(self, stream: int, saying: Saying) -> None:
        if saying.status == 0:
            self.transport.abort()
            return
        head = {":status": str(saying.status), "apns-id": "A1", **saying.headers}
        body = orjson.dumps(saying.document) if saying.document else b""
        self.h2.send_headers(stream, list(head.items()), end_stream=not body)
        while body:
            part, body = body[:16_000], body[16_000:]
            self.h2.send_data(stream, part, end_stream=not body)
        self.flush()

    def flush(self) -> None:
        self.transport.write(self.h2.data_to_send())

    def abort(self) -> None:
        self.transport.abort()

    @override
    def connection_lost(self, _: Exception | None) -> None:
        self.apple.connections.remove(self)


# ---- Google and Amazon ------------------------------------------------------------------------------------------------


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # of 5, some of 50 at once are turned away


class Web(Service):
    """FCM and ADM with their authorities, on one port."""

    def __init__(self) -> None:
        super().__init__()
        self.logins: list[dict[str, str]] = []
        self.login_script: Callable[[], Saying] | None = None
        self.accepted: set[str] = set()
        self.over = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                saying = service.answer(self.path, headers, text)
                if saying is None:
                    service.over.wait(60)
                if saying is None or saying.status == 0:
                    self.close_connection = True
                    return
                body = orjson.dumps(saying.document)
                self.send_response(saying.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            @override
            def log_message(self, *_: object) -> None:
                pass

        self._server = _Listening(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, path: str, headers: dict[str, str], text: str) -> Saying | None:
        if path in ("/google", "/amazon"):
            return self._login(path, {name: values[0] for name, values in parse_qs(text).items()})
        if headers.get("authorization", "").removeprefix("Bearer ") not in self.accepted:
            error = {"code": 401, "message": "Request had invalid credentials.", "status": "UNAUTHENTICATED"}
            return Saying(401, {"error": error, "reason": "InvalidAccessToken"})
        if path.startswith("/messaging/registrations/"):
            return self.take(Pushed(unquote(path.split("/")[3]), text, headers))
        assert path == f"/v1/projects/{PROJECT}/messages:send", path
        return self.take(Pushed(orjson.loads(text)["message"].get("token", ""), text, headers))

    def _login(self, path: str, form: dict[str, str]) -> Saying:
        if self.login_script is not None:
            return self.login_script()
        if path == "/google":
            try:
                self._check_assertion(form)
            except jwt.InvalidTokenError as error:
                return Saying(400, {"error": "invalid_grant", "error_description": str(error)})
        elif (form["grant_type"], form["scope"]) != ("client_credentials", "messaging:push"):
            return Saying(400, {"error": "invalid_scope"})
        elif (form["client_id"], form["client_secret"]) != ("id", "secret"):
            return Saying(401, {"error": "invalid_client"})
        self.logins.append(form)
        token = f"{'t' * 1500}{len(self.logins)}"  # Google's are long
        self.accepted.add(token)
        return Saying(200, {"access_token": token, "expires_in": 3599, "token_type": "Bearer"})

    def _check_assertion(self, form: dict[str, str]) -> None:
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        claims = jwt.decode(
            form["assertion"], account_key().public_key(), ["RS256"], audience=f"{self.url}/google"
        )
        assert claims["iss"] == ACCOUNT
        assert claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
        assert claims["exp"] - claims["iat"] == 3600

    @property
    def urls(self) -> dict[str, str]:
        """For the setting `push_endpoints`."""
        return {
            "fcm": self.url,
            "google_oauth": f"{self.url}/google",
            "adm": self.url,
            "adm_oauth": f"{self.url}/amazon",
        }

    @contextlib.contextmanager
    def serving(self) -> Iterator["Web"]:
        """Answer as long as the block."""
        with answering(self._server):
            try:
                yield self
            finally:
                self.over.set()


def fcm_error(status: int, code: str, error_code: str = "") -> dict[str, Any]:
    """An error as Google says it."""
    details = [{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": error_code}]
    return {
        "error": {
            "code": status,
            "message": f"{code} happened",
            "status": code,
            "details": details if error_code else [],
        }
    }
