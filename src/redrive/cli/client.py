"""The client of the commands: JSON over HTTP to a running server, signed where credentials are set; listings by pages."""

import argparse
import http.client
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Self

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from redrive.cli.terminal import CommandFailed, add_json, note, print_json

SECONDS_MAX: Final = 30
# Where AWS's and Azure's tools look for certificates to trust; Python itself looks at SSL_CERT_FILE.
_BUNDLE_VARIABLES: Final = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")


def add_server(command: argparse.ArgumentParser) -> None:
    """Let a command say which server it means, and whose resources there."""
    add_url(command)
    add_region(command)
    command.add_argument("--azure-subscription", metavar="GUID", help="Azure subscription, for Event Grid")
    command.add_argument("--resource-group", metavar="NAME", help="resource group in that subscription")


def add_url(command: argparse.ArgumentParser) -> None:
    """Let a command say which server it means; the AWS CLI's name of the option is taken too."""
    url = os.environ.get("REDRIVE_URL") or "http://127.0.0.1:4566"
    command.add_argument(
        "--url",
        "--endpoint-url",
        dest="url",
        metavar="URL",
        type=server_url,
        default=url,
        help=f"the server, also REDRIVE_URL (default: {url})",
    )


def add_region(command: argparse.ArgumentParser) -> None:
    """Let a command say which region it means."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    command.add_argument("--region", default=region, help=f"default: {region}")


def server_url(text: str) -> str:
    """A server's URL without a slash at its end; `host:port` means http, as curl has it.

    Raises:
        argparse.ArgumentTypeError: Not the URL of a server.
    """
    url = (text if "://" in text else f"http://{text}").rstrip("/")
    try:
        parts = urllib.parse.urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of brackets, or of a port that is none
        is_usable = False
    if not is_usable or not url.isascii() or any(character.isspace() for character in url):
        raise argparse.ArgumentTypeError(f"{text!r} is not the URL of a server like http://127.0.0.1:4566")
    return url


def with_client(work: "Callable[[Client, argparse.Namespace], int]") -> Callable[[argparse.Namespace], int]:
    """Run a command with a client of the server that its line means."""
    return lambda parsed: work(Client.of(parsed), parsed)


class ControlAnswer(dict[str, Any]):
    """A JSON object of a server's; what it lacks says that the server is no Redrive of this version."""

    def __missing__(self, key: str) -> Any:
        """Give up.

        Raises:
            CommandFailed: Always.
        """
        raise CommandFailed(f"the server's answer has no {key!r}: is it Redrive, and of this version?")


@dataclass(frozen=True, slots=True)
class Client:
    """One server, and who asks it."""

    url: str  # The server's, without a slash at its end
    region: str  # Region that requests are signed for
    # The Azure subscription and resource group that are meant, if any.
    scope: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> Self:
        """The server that a command line means, and whose resources there."""
        scope = {"subscription": parsed.azure_subscription, "group": parsed.resource_group}
        query = {name: value for name, value in scope.items() if value}
        return cls(parsed.url, parsed.region, query)

    def get(self, path: str, **parameters: Any) -> ControlAnswer:
        """Ask for something.

        Raises:
            CommandFailed: The server refused, or did not answer as Redrive does.
        """
        return self._ask("GET", self._path_with_query(path, parameters), None)

    def post(self, path: str, document: dict[str, Any]) -> ControlAnswer:
        """Ask to have something done.

        Raises:
            CommandFailed: The server refused, or did not answer as Redrive does.
        """
        return self._ask("POST", self._path_with_query(path, {}), json.dumps(document).encode())

    def _path_with_query(self, path: str, parameters: Mapping[str, Any]) -> str:
        query = urllib.parse.urlencode({**self.scope, **parameters})
        return f"{path}?{query}" if query else path

    def _ask(self, method: str, path: str, body: bytes | None) -> ControlAnswer:
        """Make a signed request; its answer, or CommandFailed with what to do about it."""
        signed_request = AWSRequest(method, self.url + path, data=body)
        key = os.environ.get("AWS_ACCESS_KEY_ID") or "test"
        secret = os.environ.get("AWS_SECRET_ACCESS_KEY", "test")
        SigV4Auth(Credentials(key, secret), "redrive", self.region).add_auth(signed_request)
        request = urllib.request.Request(  # noqa: S310 - the user's own server
            self.url + path, data=body, headers=dict(signed_request.headers.items()), method=method
        )
        try:
            with urllib.request.urlopen(  # noqa: S310 - the user's own server
                request, timeout=SECONDS_MAX, context=_ssl_context(self.url)
            ) as answer:
                return _parse_answer(self.url, answer.read())
        except urllib.error.HTTPError as error:
            raise CommandFailed(_refusal_text(error)) from None
        except urllib.error.URLError as error:
            raise CommandFailed(_connection_failure(self.url, error.reason)) from None
        except (OSError, http.client.HTTPException) as error:
            raise CommandFailed(_connection_failure(self.url, error)) from None


def _parse_answer(url: str, body: bytes) -> ControlAnswer:
    """The JSON object in an answer."""
    try:
        document = json.loads(body, object_hook=ControlAnswer)
    except ValueError:  # no JSON, or no text
        document = None
    if not isinstance(document, ControlAnswer):
        raise CommandFailed(f"{url} answers, but not as Redrive does: is it another server?")
    return document


def _refusal_text(error: urllib.error.HTTPError) -> str:
    """The server's message, or where it is not Redrive's, what came instead."""
    try:
        text = str(json.load(error)["message"])
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason} from {error.url.partition('?')[0]}: is it Redrive?"
    if error.code == HTTPStatus.FORBIDDEN and not os.environ.get("AWS_ACCESS_KEY_ID"):
        return f"{text} AWS_ACCESS_KEY_ID is not set: export $(redrive keys create --account ACCOUNT)"
    return text


def _connection_failure(url: str, cause: object) -> str:
    """The reason why there was no answer, with a remedy for certificates."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        trust_store = _bundle() or "the system's certificates"
        return (
            f"the certificate of {url} is not trusted by {trust_store}: {cause.verify_message};"
            f" name the one that signed it in {_BUNDLE_VARIABLES[0]}"
        )
    if isinstance(cause, ssl.SSLError):
        return f"no TLS connection to {url}: is it an http:// server? ({cause.reason})"
    if isinstance(cause, http.client.HTTPException):
        remedy = ": is it an https:// server?" if url.startswith("http:") else ""
        return f"{url} does not speak HTTP ({type(cause).__name__}){remedy}"
    reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
    return f"no answer from {url}: {reason}"


def _bundle() -> str | None:
    return next((os.environ[name] for name in _BUNDLE_VARIABLES if os.environ.get(name)), None)


def _ssl_context(url: str) -> ssl.SSLContext | None:
    """The context for https that trusts the bundle of the environment; None for http."""
    if not url.startswith("https:"):
        return None
    bundle = _bundle()
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:
        raise CommandFailed(f"cannot read the certificates in {bundle}: {error.strerror}") from None


PAGE_MAX: Final = 1000  # entries that the server shows at once

Entry = dict[str, Any]


def add_listing(command: argparse.ArgumentParser, after: str) -> None:
    """Let a listing be cut into pages and be printed for programs; `after` is what its entries are known by."""
    command.add_argument(
        "--limit", type=int, default=100, metavar="N", help="maximum number of entries (default: 100)"
    )
    command.add_argument("--after", default="", metavar=after, help="start after this entry")
    add_json(command)


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing that the server has."""

    path: str  # Its route
    member: str  # The member of the answer that has the entries
    key: Callable[[Entry], object]  # Key of an entry, from which the next page continues
    show: Callable[[list[Entry]], None]  # Prints entries for people
    nothing: str  # Text for an empty list

    def run(self, client: Client, parsed: argparse.Namespace, **parameters: Any) -> int:
        """Ask for as many of the server's pages as it takes, and print what they have, or JSON; `parsed` has the limits.

        Raises:
            CommandFailed: The server refused, or did not answer as Redrive does.
        """
        entries: list[Entry] = []
        after, more = parsed.after, True
        while more and (len(entries) < parsed.limit or not entries):
            start = {"after": after} if after else {}
            limit = min(PAGE_MAX, parsed.limit - len(entries))
            page = client.get(self.path, limit=limit, **start, **parameters)
            entries += page[self.member]
            after = self.key(entries[-1]) if entries else after
            more = page["more"]
        if parsed.json:
            print_json({self.member: entries, "more": more})
            return 0
        if entries:
            self.show(entries)
        else:
            note(self.nothing)
        if more:
            note(f"there are more: --after {after}")
        return 0
