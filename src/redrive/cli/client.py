"""How commands speak to a running server: JSON over HTTP, signed where credentials are set."""

import argparse
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

SECONDS_MAX = 30


class Refused(Exception):  # noqa: N818 - an answer for whoever runs the command
    """The server did not do it; the message says why."""


def add_server(command: argparse.ArgumentParser) -> None:
    """Let a command say which server it means."""
    url = os.environ.get("REDRIVE_URL", "http://127.0.0.1:4566")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    command.add_argument("--url", default=url, help=f"the server, also REDRIVE_URL (default: {url})")
    command.add_argument("--region", default=region, help=f"default: {region}")
    command.add_argument("--azure-subscription", metavar="GUID", help="for Event Grid: whose")
    command.add_argument("--resource-group", metavar="NAME", help="and in which of its groups")


def reporting(work: "Callable[[Client, argparse.Namespace], int]") -> Callable[[argparse.Namespace], int]:
    """Run a command against the server; what the server refuses becomes a line and an exit status."""

    def run(parsed: argparse.Namespace) -> int:
        try:
            return work(Client.of(parsed), parsed)
        except Refused as error:
            print(f"redrive: {error}", file=sys.stderr)
            return 1

    return run


def moment(moment_ms: int) -> str:
    """A moment as a terminal shows it, in UTC."""
    return f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


@dataclass(frozen=True, slots=True)
class Client:
    """One server, and who asks it."""

    url: str
    region: str
    place: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> Self:
        """The server that a command line means, and whose things there."""
        named = {"subscription": parsed.azure_subscription, "group": parsed.resource_group}
        place = {name: value for name, value in named.items() if value}
        return cls(parsed.url.rstrip("/"), parsed.region, place)

    def get(self, path: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something."""
        return self._ask("GET", self._addressed(path, parameters), None)

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """Ask to have something done."""
        return self._ask("POST", self._addressed(path, {}), json.dumps(document).encode())

    def _addressed(self, path: str, parameters: Mapping[str, Any]) -> str:
        query = urllib.parse.urlencode({**self.place, **parameters})
        return f"{path}?{query}" if query else path

    def _ask(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        signed = AWSRequest(method, self.url + path, data=body)
        key, secret = (
            os.environ.get("AWS_ACCESS_KEY_ID", "test"),
            os.environ.get("AWS_SECRET_ACCESS_KEY", "test"),
        )
        SigV4Auth(Credentials(key, secret), "redrive", self.region).add_auth(signed)
        request = urllib.request.Request(  # noqa: S310 - the user's own server
            self.url + path, data=body, headers=dict(signed.headers.items()), method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:  # noqa: S310 - see above
                document: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(_message(error)) from None
        except OSError as error:
            raise Refused(f"no answer from {self.url}: {error}") from None
        return document


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["message"])
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"
