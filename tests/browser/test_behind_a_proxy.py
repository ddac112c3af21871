"""Story 9: the console behind a proxy with TLS, below a path of its own."""

import contextlib
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from typing_extensions import override

from redrive.cli.main import main
from redrive.server.tls import local_authority, server_context
from tests.browser.chromium import PUBLIC_HOST
from tests.browser.screen import Screen
from tests.browser.signing_in import KEY, sign_in
from tests.console.world import SCOPE
from tests.services.answering import answering
from tests.services.clients import sdk
from tests.services.server import Server, serving
from tests.services.tls_proxy import TlsProxy

PREFIX: Final = "/ops/redrive"
CONSOLE: Final = f"{PREFIX}/_redrive/console"
_ROOM: Final = f"{CONSOLE}/{SCOPE.account}/{SCOPE.region}"
_FORM: Final = "application/x-www-form-urlencoded"
_DOWNLOAD: Final = """
const [css, done] = arguments;
fetch(document.querySelector(css).href).then(async (answer) => done(
  [answer.status, answer.headers.get("content-disposition"), await answer.text()]));
"""


@dataclass
class Operations:
    """The proxy, the server behind it, and how both are reached.

    Attributes:
        proxy: In front, with TLS.
        server: Behind it, on loopback.
        authority: Of the proxy's certificate.
        url: The server's, as browsers see it.
    """

    proxy: TlsProxy
    server: Server
    authority: Path
    url: str

    def ask(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
        """One request to the proxy as no browser sends it: status and text."""
        context = ssl.create_default_context(cafile=self.authority)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPSConnection("127.0.0.1", self.proxy.port, context=context, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Host": self.url.split("/")[2], **named})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


@contextlib.contextmanager
def operations(directory: Path) -> Iterator[Operations]:
    """A server below a prefix of a host's, where one has to sign in."""
    store = f"sqlite:///{directory / 'redrive.db'}"
    assert (
        main(
            [
                "keys",
                "create",
                "--account",
                SCOPE.account,
                "--id",
                KEY[0],
                "--secret",
                KEY[1],
                "--store",
                store,
            ]
        )
        == 0
    )
    kept = local_authority(directory / "tls", [PUBLIC_HOST], time.time_ns() // 1_000_000)
    proxy = TlsProxy(PREFIX)
    with proxy.serving(server_context(kept.server_file, kept.server_file)):
        url = f"https://{PUBLIC_HOST}:{proxy.port}{PREFIX}"
        with serving(store, "--auth", "required", "--public-url", url, directory=directory) as server:
            proxy.upstream = server.url
            yield Operations(proxy, server, kept.authority_file, url)


def test_the_console_lives_below_the_path_of_a_proxy(screen: Screen, tmp_path: Path) -> None:
    with operations(tmp_path) as operated:
        sqs = sdk(operated.server.url, key=KEY)
        queue = sqs.create_queue(QueueName="orders")["QueueUrl"].rpartition("/")[2]
        at_server = f"{operated.server.url}/{SCOPE.account}/{queue}"
        screen.open(f"{operated.url}/")
        assert screen.url == f"{operated.url}/_redrive/console/login"
        sign_in(screen)
        assert screen.url == f"{operated.url}/_redrive/console/"
        cookie = _the_cookie_is_the_hosts_alone(screen)
        screen.press("Queues")
        screen.follow("tr[data-row] a")
        screen.press("Messages")
        sqs.send_message(QueueUrl=at_server, MessageBody="polled")
        screen.wait_for("polled")
        screen.press("Send")
        screen.fill("#body", "posted")
        screen.press("Send")
        screen.wait_for("posted")
        screen.open(f"{operated.url}/_redrive/console/{SCOPE.account}/{SCOPE.region}/dead-letters/{queue}")
        status, kept_as, text = screen.run_async(_DOWNLOAD, "a[download]")
        assert (status, "attachment" in kept_as) == (200, True)
        assert "polled" in text
        assert "posted" in text
        assert operated.proxy.strays == []
        assert all(
            each.path.startswith(CONSOLE) or each.path == f"{PREFIX}/" for each in operated.proxy.passed
        )
        _a_form_of_another_site_is_refused(screen, operated, cookie)
        _a_strange_host_is_not_ours(operated, cookie)
        assert (
            sdk(operated.server.url, key=KEY)
            .receive_message(QueueUrl=at_server, MaxNumberOfMessages=10)["Messages"]
            .__len__()
            == 2
        )
        screen.leave()


def _the_cookie_is_the_hosts_alone(screen: Screen) -> str:
    (cookie,) = screen.cookies()
    assert cookie["name"] == "__Host-redrive"
    assert (cookie["secure"], cookie["httpOnly"], cookie["path"]) == (True, True, "/")
    assert cookie["sameSite"] == "Strict"
    assert cookie["domain"] == PUBLIC_HOST
    return f"{cookie['name']}={cookie['value']}"


def _a_form_of_another_site_is_refused(screen: Screen, operated: Operations, cookie: str) -> None:
    """With `Sec-Fetch-Site`, as browsers send it over TLS; and without, though with the cookie."""
    send = f"{_ROOM}/queues/orders/send"
    with _elsewhere(f"https://{operated.url.split('/')[2]}{send}") as url:
        screen.open(url)
        screen.press("Win")
        assert "This form was not sent by a page of the console" in screen.text()
    forged = operated.proxy.passed[-1]
    while forged.method != "POST":
        operated.proxy.passed.pop()
        forged = operated.proxy.passed[-1]
    assert (forged.path, forged.status, forged.headers["sec-fetch-site"]) == (send, 403, "cross-site")
    assert all("status of 403" in each for each in screen.complaints())
    for origin in ({"Origin": "https://evil.example"}, {}):
        status, _ = operated.ask("POST", send, "body=forged", Cookie=cookie, Content_Type=_FORM, **origin)
        assert status == 403, origin
    own = {"Origin": operated.url.removesuffix(PREFIX)}
    assert (
        operated.ask("POST", send, "", Cookie=cookie, Content_Type=_FORM, **own)[0] == 400
    )  # of its own: no body


def _a_strange_host_is_not_ours(operated: Operations, cookie: str) -> None:
    for path in (f"{CONSOLE}/", f"{CONSOLE}/login", f"{_ROOM}/queues"):
        status, told = operated.ask("GET", path, Host="evil.example.com", Cookie=cookie)
        assert status == 421, path
        assert "does not answer as evil.example.com" in told


@contextlib.contextmanager
def _elsewhere(action: str) -> Iterator[str]:
    """A page of another site with a form for this action; its URL."""
    fields = '<input name="body" value="forged"><button>Win</button>'
    page = f'<main><form method="post" action="{action}">{fields}</form></main>'

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 204)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode() if self.path == "/" else b"")

        @override
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with answering(server):
        yield f"http://127.0.0.1:{server.server_port}/"
