"""`redrive env`: lines that point a shell at a server, and keep its commands from the real AWS."""

import argparse
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from redrive.cli.client import add_region, add_url

_ACCOUNT: Final = re.compile(r"\d{12}")
# Variables of AWS's tools that neither choose a server nor give credentials.
_HARMLESS: Final = frozenset({"AWS_CA_BUNDLE", "AWS_DEFAULT_OUTPUT", "AWS_PAGER"})
# Version 1 of the AWS CLI ignores AWS_ENDPOINT_URL for SQS, and version 2 reads it since 2.13 only.
_FUNCTION: Final = 'aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }'


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.description = (
        "Print lines that point a shell at a server, and keep its commands from the real AWS:"
        ' eval "$(redrive env)".'
    )
    add_url(command)
    add_region(command)
    command.add_argument(
        "--account", type=_account, default="000000000000", help="12 digits (default: 000000000000)"
    )
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Print the lines, for any shell that follows POSIX."""
    ours = _variables(parsed, os.environ)
    for name in _foreign(os.environ, ours):
        print(f"unset {name}")
    for name, value in ours.items():
        print(f"export {name}={shlex.quote(value)}")
    print(_FUNCTION)
    return 0


def _account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an account: 12 digits")
    return text


def _variables(parsed: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a shell that asks this server only.

    Without a configuration file `--profile` finds no credentials that the real AWS would accept, and no endpoint.
    """
    host = urlsplit(parsed.url).hostname or ""
    direct = {
        name: ",".join(dict.fromkeys([host, *filter(None, environment.get(name, "").split(","))]))
        for name in ("NO_PROXY", "no_proxy")
    }
    return {
        "AWS_ENDPOINT_URL": parsed.url,
        "AWS_DEFAULT_REGION": parsed.region,
        "AWS_REGION": parsed.region,
        "AWS_ACCESS_KEY_ID": parsed.account,
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "REDRIVE_URL": parsed.url,
        **direct,
    }


def _foreign(environment: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[str]:
    """Variables that would lead elsewhere: a profile, a session token, `AWS_ENDPOINT_URL_SQS` and the like."""
    for name in sorted(environment.keys() - ours.keys() - _HARMLESS):
        if re.fullmatch(r"AWS_\w+", name):
            yield name
