"""The URL of a PostgreSQL database, which may name several hosts: `postgresql://user@one:5432,two/database?option=value`."""

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs, urlsplit


def hosts_of(url: str) -> Sequence[tuple[str, int | None]]:
    """The hosts and ports that a URL names; a host is empty where it names none, which means a socket of this machine.

    Raises:
        ValueError: A port is none.
    """
    try:
        hosts = urlsplit(url).netloc.rpartition("@")[2].split(",")
        parts = [urlsplit(f"//{host}") for host in hosts]
        return [(part.hostname or "", part.port) for part in parts]
    except ValueError as error:
        raise ValueError(f"has a URL that cannot be used: {error}") from None


def options_of(url: str) -> Mapping[str, str]:
    """The options behind the question mark; of one given twice the last counts."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}
