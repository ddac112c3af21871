"""Apple's push service and what it says, beyond what every kind of endpoint promises (`test_promise.py`)."""

import asyncio
import random
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from h2.errors import ErrorCodes

from redrive.endpoints.push import apns
from redrive.endpoints.push.endpoint import PushEndpoint
from redrive.model.attempt import AttemptResult, Reason
from tests.contracts.endpoints.kinds import IMPATIENCE_MS, PATIENCE_MS
from tests.contracts.endpoints.push import (
    DEAD,
    DENIED,
    LARGE,
    SLOWER,
    TROUBLE,
    WRONG,
    apple_push,
    google_push,
    push_endpoint,
    pushing,
    real_now,
    verdict,
)
from tests.services.push_services import (
    KEY_ID,
    Apple,
    AppleConnection,
    Pushed,
    Saying,
    Web,
    account_key,
    pem,
    signing_key,
)


@pytest.fixture
def apple() -> Iterator[Apple]:
    with Apple().serving() as apple:
        yield apple


@pytest.fixture
def web() -> Iterator[Web]:
    with Web().serving() as web:
        yield web


class TestApple:
    async def test_a_push_carries_the_token_and_apples_headers_alone(self, apple: Apple) -> None:
        async with pushing(apple) as endpoint:
            attempt = await endpoint.push(apple_push(token="a/b c", apns_priority="5", colour="blue"))
        assert (verdict(attempt), attempt.status) == ((AttemptResult.DELIVERED, Reason.ACCEPTED), 200)
        assert attempt.response == '{"apns-id":"A1"}'
        pushed = apple.next()
        assert pushed.token == "a/b c"
        headers = {name: value for name, value in pushed.headers.items() if not name.startswith(":")}
        assert headers.pop("authorization").startswith("bearer ey")
        assert headers == {"apns-topic": "com.example.rentals", "apns-priority": "5"}

    @pytest.mark.parametrize(
        ("status", "reason", "means"),
        [
            (400, "BadDeviceToken", DEAD),
            (400, "DeviceTokenNotForTopic", DEAD),
            (410, "Unregistered", DEAD),
            (410, "ExpiredToken", DEAD),
            (410, "", DEAD),
            (400, "BadTopic", WRONG),
            (400, "TopicDisallowed", WRONG),
            (404, "BadPath", WRONG),
            (413, "PayloadTooLarge", LARGE),
            (403, "InvalidProviderToken", DENIED),
            (403, "BadCertificateEnvironment", DENIED),
            (429, "TooManyRequests", SLOWER),
            (500, "InternalServerError", TROUBLE),
            (503, "Shutdown", TROUBLE),
            (599, "", TROUBLE),
        ],
    )
    async def test_each_reason_of_apple_has_its_result(
        self, apple: Apple, status: int, reason: str, means: tuple[AttemptResult, Reason]
    ) -> None:
        apple.say(status, {"reason": reason} if reason else None)
        async with pushing(apple) as endpoint:
            attempt = await endpoint.push(apple_push())
        assert (verdict(attempt), attempt.status) == (means, status)
        assert reason in attempt.response

    async def test_one_provider_token_serves_for_forty_minutes(self, apple: Apple) -> None:
        now = [real_now()]
        endpoint = PushEndpoint(lambda: now[0], random.Random(7), {"apns": apple.url})
        for minutes in (-90, -60, -51, -50, -49):  # tokens are not looked at for their age by this service
            now[0] = real_now() + minutes * 60_000
            assert (await endpoint.push(apple_push())).delivered
        await endpoint.close()
        tokens = {apple.next().headers["authorization"] for _ in range(5)}
        assert len(tokens) == 2
        assert apple.opened == 1

    async def test_a_token_that_is_too_old_is_made_anew(self, apple: Apple) -> None:
        answers = [Saying(403, {"reason": "ExpiredProviderToken"}), Saying()]
        apple.script = lambda _: answers.pop(0)
        async with pushing(apple) as endpoint:
            assert (await endpoint.push(apple_push())).delivered
        assert answers == []

    async def test_once_and_not_for_ever(self, apple: Apple) -> None:
        apple.say(403, {"reason": "ExpiredProviderToken"})
        async with pushing(apple) as endpoint:
            assert verdict(await endpoint.push(apple_push())) == DENIED
        assert apple.pushed.qsize() == 2

    @pytest.mark.parametrize(
        "changed",
        [
            {"credential": pem(ec.generate_private_key(ec.SECP256R1()))},
            {"principal": "OTHER"},
            {"team": "OTHER"},
        ],
    )
    async def test_wrong_credentials_are_denied_by_apple(self, apple: Apple, changed: dict[str, str]) -> None:
        async with pushing(apple) as endpoint:
            attempt = await endpoint.push(apple_push(**changed))
        assert (verdict(attempt), attempt.status) == (DENIED, 403)
        assert apple.is_idle

    @pytest.mark.parametrize(
        "credential",
        ["secret", "", pem(account_key()), pem(ec.generate_private_key(ec.SECP384R1())), "-----BEGIN X-----"],
    )
    async def test_an_unusable_signing_key_is_denied_before_connecting(
        self, apple: Apple, credential: str
    ) -> None:
        async with pushing(apple) as endpoint:
            attempt = await endpoint.push(apple_push(credential=credential))
        assert (verdict(attempt), attempt.status) == (DENIED, 0)
        assert ".p8" in attempt.response

    async def test_a_signing_key_without_the_lines_around_it(self, apple: Apple) -> None:
        bare = "".join(pem(signing_key()).splitlines()[1:-1])
        async with pushing(apple) as endpoint:
            assert (await endpoint.push(apple_push(credential=bare))).delivered

    async def test_applications_have_connections_of_their_own(self, apple: Apple) -> None:
        async with pushing(apple) as endpoint:
            for principal in (KEY_ID, "OTHER", KEY_ID, "OTHER"):
                await endpoint.push(apple_push(principal=principal))
        assert apple.opened == 2

    async def test_an_unsendable_header_leaves_the_connection_open(self, apple: Apple) -> None:
        async with pushing(apple) as endpoint:
            odd = await endpoint.push(apple_push(apns_topic="a\nb"))
            assert verdict(odd) == (AttemptResult.FAILED, Reason.CONNECTION)
            assert (await endpoint.push(apple_push())).delivered


class TestConnections:
    async def test_as_many_at_once_as_the_service_allows(self) -> None:
        with Apple(streams_max=3).serving() as apple:
            async with pushing(apple) as endpoint:
                attempts = await asyncio.gather(*(endpoint.push(apple_push(token=str(n))) for n in range(40)))
        assert all(attempt.delivered for attempt in attempts)
        assert sorted(int(apple.next().token) for _ in range(40)) == list(range(40))
        assert apple.opened == 1

    async def test_more_than_a_window_goes_out_as_there_is_room(self, apple: Apple) -> None:
        body = {"aps": {"alert": "x" * 200_000}}
        async with pushing(apple) as endpoint:
            attempts = await asyncio.gather(*(endpoint.push(apple_push(body)) for _ in range(5)))
        assert all(attempt.delivered for attempt in attempts)
        assert all(apple.next().document == body for _ in range(5))

    async def test_of_a_long_answer_the_beginning_counts(self, apple: Apple) -> None:
        apple.say(503, {"reason": "x" * 30_000})
        async with pushing(apple) as endpoint:
            for _ in range(5):  # more than a window together
                attempt = await endpoint.push(apple_push())
                assert verdict(attempt) == TROUBLE
                assert len(attempt.response) == 1024
        assert apple.opened == 1

    async def test_a_goodbye_leaves_what_is_under_way(self, apple: Apple) -> None:
        """GOAWAY: what came before it is answered, what came after goes by another connection."""
        held: list[tuple[AppleConnection, int]] = []

        def hold(connection: AppleConnection, stream: int) -> None:
            connection.requests.pop(stream)
            held.append((connection, stream))
            if len(held) == 1:
                connection.h2.close_connection(ErrorCodes.NO_ERROR, last_stream_id=stream)
                connection.h2.state_machine.state = type(connection.h2.state_machine.state).SERVER_OPEN
                connection.flush()
                connection.say(stream, Saying(200))

        async with pushing(apple) as endpoint:
            assert (await endpoint.push(apple_push())).delivered
            (first,) = apple.connections
            first.answer = lambda stream: hold(first, stream)  # type: ignore[method-assign]  # for this test alone
            attempts = await asyncio.gather(*(endpoint.push(apple_push(token=str(n))) for n in range(3)))
            assert all(attempt.delivered for attempt in attempts)
            assert (await endpoint.push(apple_push())).delivered
        assert apple.opened == 2

    async def test_a_connection_that_was_closed_costs_no_attempt(self, apple: Apple) -> None:
        async with pushing(apple) as endpoint:
            assert (await endpoint.push(apple_push())).delivered
            (first,) = apple.connections
            first.answer = lambda _: first.abort()  # type: ignore[method-assign]  # for this test alone
            assert (await endpoint.push(apple_push())).delivered
        assert apple.opened == 2

    async def test_a_connection_that_says_nothing_is_left(self, apple: Apple) -> None:
        async with pushing(apple) as endpoint:
            assert (await endpoint.push(apple_push())).delivered
            apple.script = lambda _: None
            assert (await endpoint.push(apple_push(timeout_ms=100))).reason is Reason.TIMED_OUT
            apple.say(200)
            assert (await endpoint.push(apple_push())).delivered
        assert apple.opened == 2

    @pytest.mark.parametrize(("scheme", "timeout_ms"), [("http", IMPATIENCE_MS), ("https", PATIENCE_MS)])
    async def test_a_service_that_never_speaks_is_called_anew(
        self, monkeypatch: pytest.MonkeyPatch, scheme: str, timeout_ms: int
    ) -> None:
        """Without TLS it is connected to, and waited for by each push; with TLS, opening takes no longer than it may."""
        monkeypatch.setattr(apns, "_OPEN_SECONDS", 0.1)
        callers: list[asyncio.StreamWriter] = []

        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            callers.append(writer)
            await hang_up.wait()
            writer.transport.abort()

        hang_up = asyncio.Event()
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        endpoint = push_endpoint({"apns": f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"})
        for _ in range(3):
            assert (await endpoint.push(apple_push(timeout_ms=timeout_ms))).reason is Reason.TIMED_OUT
        assert len(callers) == 3
        hang_up.set()
        await endpoint.close()
        server.close()
        await server.wait_closed()

    async def test_a_hanging_push_times_out_alone(self, apple: Apple) -> None:
        apple.script = lambda pushed: None if pushed.token == "hang" else Saying()
        async with pushing(apple) as endpoint:
            hanging = asyncio.create_task(endpoint.push(apple_push(token="hang", timeout_ms=300)))
            while not hanging.done():
                assert (await endpoint.push(apple_push())).delivered
            assert (await hanging).reason is Reason.TIMED_OUT
            assert (await endpoint.push(apple_push())).delivered
        assert apple.opened == 1

    async def test_a_server_without_http2_is_a_connection_failure(self, web: Web) -> None:
        endpoint = push_endpoint({"apns": web.url})
        attempt = await endpoint.push(apple_push())
        await endpoint.close()
        assert verdict(attempt) == (AttemptResult.FAILED, Reason.CONNECTION)


# ---- TLS and certificates ------------------------------------------------------------------------------------------


class Authority:
    """An authority with a certificate for the service and one for an application."""

    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        own = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(own)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        alternative = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        self.file = folder / "service.pem"
        self.file.write_bytes(self._signed(name, key, alternative) + pem(key).encode())

    def application(self, topic: str) -> tuple[str, str]:
        """A certificate as Apple gives to an application, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.USER_ID, topic)] if topic else [])
        certificate = self._signed(name, key, x509.BasicConstraints(ca=False, path_length=None))
        return certificate.decode(), pem(key)

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> bytes:
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(Encoding.PEM)

    def context(self, *, protocol: str = "h2") -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file)
        context.set_alpn_protocols([protocol])
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(self.ca_file)
        return context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


class TestTls:
    async def test_tokens_and_certificates(self, authority: Authority) -> None:
        certificate, key = authority.application("com.example.of.the.certificate")
        shown = {"principal": certificate, "credential": key, "apns_topic": ""}
        with Apple(authority.context()).serving() as apple:
            async with pushing(apple, ca_file=authority.ca_file) as endpoint:
                assert (await endpoint.push(apple_push())).delivered
                assert "authorization" in apple.next().headers
                assert (await endpoint.push(apple_push(**shown))).delivered
                headers = apple.next().headers
                assert headers["apns-topic"] == "com.example.of.the.certificate"
                assert "authorization" not in headers
                assert (await endpoint.push(apple_push(**(shown | {"apns_topic": "mine"})))).delivered
                assert apple.next().headers["apns-topic"] == "mine"
            assert apple.opened == 2

    async def test_an_untrusted_certificate_is_a_tls_failure(self, authority: Authority) -> None:
        with Apple(authority.context()).serving() as apple:
            async with pushing(apple) as endpoint:
                attempt = await endpoint.push(apple_push())
        assert verdict(attempt) == (AttemptResult.FAILED, Reason.TLS)

    async def test_a_service_that_speaks_something_else(self, authority: Authority) -> None:
        with Apple(authority.context(protocol="http/1.1")).serving() as apple:
            async with pushing(apple, ca_file=authority.ca_file) as endpoint:
                attempt = await endpoint.push(apple_push())
        assert verdict(attempt) == (AttemptResult.FAILED, Reason.CONNECTION)
        assert "HTTP/2" in attempt.response

    async def test_unusable_certificates_are_denied_before_connecting(self, authority: Authority) -> None:
        certificate, _ = authority.application("t")
        _, other = authority.application("t")
        broken = "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----"
        with Apple(authority.context()).serving() as apple:
            async with pushing(apple, ca_file=authority.ca_file) as endpoint:
                for principal, credential in ((certificate, other), (certificate, "no"), (broken, other)):
                    attempt = await endpoint.push(apple_push(principal=principal, credential=credential))
                    assert verdict(attempt) == DENIED, attempt


async def test_services_do_not_hold_up_each_other(apple: Apple, web: Web) -> None:
    async with pushing(apple, web) as endpoint:
        web.script = lambda _: None
        hanging = asyncio.create_task(endpoint.push(google_push(timeout_ms=2_000)))
        assert (await endpoint.push(apple_push())).delivered
        assert not hanging.done()
        hanging.cancel()


async def test_closing_ends_what_is_under_way(apple: Apple) -> None:
    apple.script = lambda _: None
    endpoint = push_endpoint({"apns": apple.url})
    hanging = asyncio.create_task(endpoint.push(apple_push()))
    apple_has_it = asyncio.to_thread(apple.next)
    assert isinstance(await apple_has_it, Pushed)
    await endpoint.close()
    assert (await hanging).reason is Reason.CONNECTION
