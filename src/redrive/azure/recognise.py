"""Recognition of requests for Azure's services, by path and host alone, before any of these is imported."""

import re
from typing import Final

#: Event Grid's own paths on this server; the rest of Azure's names here are in hosts, or in the resource manager's paths.
EVENT_GRID: Final = "/eventgrid/"
#: The end of the paths that events are published to.
EVENTS: Final = "/api/events"
#: The path of validation URLs.
VALIDATION: Final = "/eventsubscriptions/"
#: Before an account's name in the paths of Blob services; no bucket of S3 can be called so.
BLOBS: Final = "/_storage/"
#: The description of the cloud, which `az cloud register` reads.
CLOUD: Final = "/metadata/endpoints"
#: The end of the path of an authority's public keys.
KEYS: Final = "/discovery/v2.0/keys"
#: Of any request: more than the largest (events, 1.5 MB), so that each service refuses in its own words.
BODY_BYTES_MAX: Final = 2 * 1024 * 1024
_GRID_HOST: Final = ".eventgrid."
_BLOB_HOST: Final = ".blob."
_TOPICS: Final = "/topics/"
_MANAGER: Final = ("/subscriptions", "//subscriptions", "/%2fsubscriptions", "/providers/", "/tenants")
_AUTHORITY: Final = ("/oauth2/", "/.well-known/openid-configuration", KEYS, CLOUD)
_ACCOUNT: Final = re.compile(r"[A-Za-z0-9]{3,24}")


def is_for_azure(path: str, host: str) -> bool:
    """True if a request is for any of them, by its path without the query and its host with the port, as sent."""
    return (
        is_publishing(path, host)
        or is_for_namespace(path, host)
        or is_for_manager(path)
        or path.startswith(VALIDATION)
        or is_for_blobs(path, host)
        or is_for_authority(path)
    )


def is_publishing(path: str, host: str) -> bool:
    """True for events that are published to a topic or a domain."""
    lower = path.lower()
    if not lower.rstrip("/").endswith(EVENTS):
        return False
    return lower.startswith(EVENT_GRID) or _GRID_HOST in host.lower()


def is_for_namespace(path: str, host: str) -> bool:
    """True for the calls of namespaces; no other path of Event Grid has a colon."""
    if ":" not in path:
        return False
    return path[: len(EVENT_GRID)].lower() == EVENT_GRID or is_at_namespace_host(path, host)


def is_at_namespace_host(path: str, host: str) -> bool:
    """True for a path below the name of a namespace's own host."""
    return _GRID_HOST in host.lower() and path[: len(_TOPICS)].lower() == _TOPICS


def is_for_manager(path: str) -> bool:
    """True for the resource manager."""
    return path.lower().startswith(_MANAGER)


def is_for_blobs(path: str, host: str) -> bool:
    """True for a Blob service."""
    return path.startswith(BLOBS) or account_at(host) is not None


def account_at(host: str) -> str | None:
    """The storage account whose host this is, `letters.blob.example.com`; None: it is not a host of blobs."""
    name, mark, _ = host.lower().partition(_BLOB_HOST)
    return name if mark and is_storage_account(name) else None


def is_storage_account(name: str) -> bool:
    """True if a storage account can be called so."""
    return _ACCOUNT.fullmatch(name) is not None


def is_for_authority(path: str) -> bool:
    """True for the authority that issues tokens, and the descriptions of it."""
    return any(part in path for part in _AUTHORITY)
