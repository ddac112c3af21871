"""Commands that cannot do their work say why in one line: no traceback, and the thing that was wrong by its name."""

import http.client
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from redrive.cli.main import main
from redrive.server.tls import local_authority
from redrive.settings import Settings, SettingsInvalid

ARN = "arn:aws:sns:us-east-1:000000000000:orders:0"
ASKING = (
    ("dlq", "queues"),
    ("dlq", "show", "orders-dead", "1"),
    ("endpoints", "list"),
    ("schedule", "--subscription", ARN),
)


class Page(BaseHTTPRequestHandler):
    """A web page, whatever it is asked."""

    status = 200
    content = b"<!DOCTYPE html><title>Hello</title><p>unclosed"

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


class ForeignJson(Page):
    content = b'{"cluster_name": "search", "tagline": "You Know, for Search"}'


class JsonList(Page):
    content = b"[1, 2]"


@contextmanager
def page(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextmanager
def mail_server() -> Iterator[str]:
    """A port that speaks first, and not HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"220 mail.example ESMTP\r\n")
                    connection.recv(100)

        threading.Thread(target=greet, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def said(words: tuple[str, ...], capsys: pytest.CaptureFixture[str], status: int = 1) -> str:
    """The one line that a command says instead of doing its work."""
    assert main(words) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("redrive: ")
    return line


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
@pytest.mark.parametrize("handler", [Page, ForeignJson, JsonList], ids=lambda handler: handler.__name__)
def test_another_web_server_is_told_from_redrive(
    words: tuple[str, ...], handler: type[BaseHTTPRequestHandler], capsys: pytest.CaptureFixture[str]
) -> None:
    with page(handler) as url:
        assert "another server?" in said((*words, "--url", url), capsys) or handler is ForeignJson


@pytest.mark.parametrize("words", ASKING[:3], ids=" ".join)
def test_json_of_another_program_is_told_by_what_it_lacks(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with page(ForeignJson) as url:
        assert "is it Redrive" in said((*words, "--url", url), capsys)


class WantsSignatures(Page):
    status = 403
    content = b'{"message": "The security token included in the request is invalid."}'


@pytest.mark.parametrize("key", ["", "AKIAWRONG"])
def test_a_server_that_requires_a_key_names_the_variables_if_they_are_unset(
    key: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    with page(WantsSignatures) as url:
        line = said(("dlq", "queues", "--url", url), capsys)
    assert line.startswith("redrive: The security token included in the request is invalid.")
    assert ("AWS_ACCESS_KEY_ID is not set" in line) is (key == "")


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_a_port_that_speaks_no_http(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with mail_server() as url:
        line = said((*words, "--url", url), capsys)
        assert url in line
        assert "does not speak HTTP" in line or "closed before we received a valid response" in line


def test_http_to_a_server_with_tls_asks_whether_it_has(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object, **__: object) -> None:
        raise http.client.RemoteDisconnected

    monkeypatch.setattr(urllib.request, "urlopen", closed)
    line = said(("dlq", "queues", "--url", "http://127.0.0.1:1"), capsys)
    assert "does not speak HTTP (RemoteDisconnected): is it an https:// server?" in line
    line = said(("dlq", "queues", "--url", "https://127.0.0.1:1"), capsys)
    assert line.endswith("does not speak HTTP (RemoteDisconnected)")


def test_tls_to_a_server_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    with page(Page) as url:
        line = said(("dlq", "queues", "--url", url.replace("http:", "https:")), capsys)
        assert "is it an http:// server?" in line


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_a_host_and_a_port_mean_http(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with page(Page) as url:
        monkeypatch.setenv("REDRIVE_URL", urlsplit(url).netloc)
        assert f"{url} answers" in said(words, capsys)


@pytest.mark.parametrize(
    "url",
    ["", "ftp://host", "http://", "http://[::1", "http://host:99999", "http://a b", "http://hö.example"],
)
@pytest.mark.parametrize("words", [ASKING[0], ASKING[-1]], ids=" ".join)
def test_the_url_of_no_server(url: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--url", url])
    assert f"{url!r} is not the URL of a server" in capsys.readouterr().err


def test_certificates_to_trust_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "nobody.pem"))
    line = said(("dlq", "queues", "--url", "https://127.0.0.1:1"), capsys)
    assert line.startswith(f"redrive: cannot read the certificates in {tmp_path / 'nobody.pem'}")


# ---- stores ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("store", "why"),
    [
        ("sqlite:///:memory:", "a store in memory is sqlite://:memory:"),
        ("sqlite:////:memory:", None),  # a file of that name in the root, if anybody wants one
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("postgresql://redrive@host:port/redrive", "URL that cannot be used"),
        ("redis://host", "must begin with sqlite:// or postgresql://"),
    ],
)
def test_a_malformed_store_url_is_refused(store: str, why: str | None) -> None:
    if why is None:
        assert Settings(store=store).store == store
        return
    with pytest.raises(SettingsInvalid, match=why):
        Settings(store=store)


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("keys", "list")], ids=" ".join)
def test_a_file_that_is_no_database(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are notes, and not few of them\n" * 100)
    assert f"cannot open {file}" in said((*command, "--store", f"sqlite:///{file}"), capsys)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("redrive@", "nobody@"), 'role "nobody" does not exist'),
        (("/postgres", "/nothing"), 'database "nothing" does not exist'),
        (("/postgres", "/postgres?sslmode=perhaps"), "`sslmode` parameter must be one of"),
    ],
)
@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("keys", "list")], ids=" ".join)
def test_a_database_that_refuses_the_login_is_named_in_one_line(
    command: tuple[str, ...],
    change: tuple[str, str],
    why: str,
    postgres_url: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = said((*command, "--store", postgres_url.replace(*change)), capsys)
    assert line.startswith("redrive: no connection to the database can be made: ")
    assert why in line
    assert not caplog.records


# ---- certificates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--tls-cert", "--tls-key"])
@pytest.mark.parametrize("content", [None, "", "-----BEGIN CERTIFICATE-----\nnonsense\n"])
def test_a_certificate_that_cannot_be_used_is_named(
    flag: str, content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = local_authority(tmp_path, [], 1_767_225_600_000).server_file
    spoilt = tmp_path / "spoilt.pem"
    if content is not None:
        spoilt.write_text(content)
    files = {"--tls-cert": str(good), "--tls-key": str(good), flag: str(spoilt)}
    flags = [word for pair in files.items() for word in pair]
    line = said(("serve", "--port", "0", "--store", "sqlite://:memory:", *flags), capsys)
    assert str(spoilt) in line
    assert flag.removeprefix("--tls-").replace("cert", "certificate") in line


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_of_endpoints_are_read_at_the_start(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trusted.pem"
    if content is not None:
        file.write_text(content)
    words = ("serve", "--port", "0", "--store", "sqlite://:memory:", "--endpoint-ca-file", str(file))
    assert f"endpoint_ca_file {file}" in said(words, capsys, status=2)


# ---- mistakes on the command line ------------------------------------------------------------------------------------


def said_by(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("serve", "--prot", "1"),
            "unknown option --prot; did you mean --port? (see redrive serve --help)\n",
        ),
        (
            ("store", "backup", "a.db", "--to", "b.db"),
            "unknown option --to; did you mean --store? (see redrive store backup --help)\n",
        ),
        (("serve", "now"), "unexpected argument now (see redrive serve --help)\n"),
        (("dlq", "lsit"), "argument ACTION: invalid choice: 'lsit' "),
        (("serve", "--zzz"), "unknown option --zzz (see redrive serve --help)\n"),
        (("dlq", "redrive", "orders-dead", "--pace", "slow"), "argument --pace: invalid choice: 'slow' "),
    ],
)
def test_a_mistake_is_told_in_one_line(
    words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = said_by(words, capsys)
    assert line.startswith(f"redrive: {text}")
    assert line.count("\n") == 1


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(()) == 2
    assert "serve" in capsys.readouterr().out


def test_a_port_in_use_names_the_option_that_chooses_another(capsys: pytest.CaptureFixture[str]) -> None:
    with page(ForeignJson) as url:
        port = url.rpartition(":")[2]
        assert main(("serve", "--port", port, "--store", "sqlite://:memory:")) == 1
    assert capsys.readouterr().err.endswith(
        f"redrive: 127.0.0.1:{port} is in use; choose another port: --port N\n"
    )


class OtherRedrive(Page):
    content = b'{"status": "ok", "version": "9.9"}'


def test_a_port_in_use_names_the_redrive_that_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    with page(OtherRedrive) as url:
        port = url.rpartition(":")[2]
        assert main(("serve", "--port", port, "--store", "sqlite://:memory:")) == 1
    assert f"127.0.0.1:{port} is in use by Redrive 9.9; " in capsys.readouterr().err


def test_a_refused_database_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert main(("serve", "--port", "0", "--store", f"postgresql://me:secret@127.0.0.1:{port}/x")) == 1
    line = capsys.readouterr().err
    assert line == f"redrive: the database did not answer: 127.0.0.1:{port} refused the connection\n"


def test_a_missing_file_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "absent.toml"
    assert main(("serve", "--config", str(file))) == 2
    assert capsys.readouterr().err == f"redrive: cannot read {file}: No such file or directory\n"
