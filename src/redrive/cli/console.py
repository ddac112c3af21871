"""`redrive console`: the address of the web console, or a link that signs in."""

import argparse
import os

from redrive.cli.client import add_url
from redrive.console import PATH
from redrive.console.session import LINK, LINK_SECONDS, token_of
from redrive.runtime.machine import SystemClock


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_url(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Print the link: where a key is in the environment, one that signs in, for a minute.

    The token stands behind a `#`, so that neither the server nor a proxy before it ever sees it in a path.
    """
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    url = f"{parsed.url}{PATH}/"
    if key and secret:
        until = SystemClock().now() // 1000 + LINK_SECONDS
        url = f"{parsed.url}{PATH}/login#{token_of(key, secret, LINK, until)}"
    print(url)
    return 0
