"""Queue URLs: how they are written, and the queue that each one means."""

import re
from functools import lru_cache
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.sqs.errors import error, no_such_queue
from redrive.model.names import ResourceName

URL_CHARS_MAX: Final = 1024

_REGION: Final = "[a-z]{2}(?:-[a-z]+)+-[0-9]"
_HOST_WITH_REGION: Final = re.compile(rf"(?:.*://)?(?:[^/]*\.)?sqs\.({_REGION})\.[^/]+/.*")
_PATH_WITH_REGION: Final = re.compile(rf".*/queue/({_REGION})/[0-9]+/[^/]+/?")
_WITHOUT_PATH: Final = re.compile("[a-z]+://[^/]*/?")
_OWN_PREFIX: Final = re.compile(rf"sqs\.{_REGION}\.")
_ADDRESS: Final = re.compile(r"[0-9.]+(?::[0-9]+)?|\[.*")  # nothing can stand before it as before a name


class QueueUrls:
    """Writes the URLs of queues, and reads those that calls bring."""

    def __init__(self, naming: str = "plain") -> None:
        """Name regions in URLs as this setting says.

        Args:
            naming: `plain`: not at all, `<base>/<account>/<name>`; `path`: `<base>/queue/<region>/<account>/<name>`;
                `host`: `<scheme>://sqs.<region>.<host>/<account>/<name>`, or by path where the host is an address.
        """
        self._naming = naming

    def write(self, call: Call, name: ResourceName) -> str:
        """The queue's URL, under the host the client used or the server's public URL."""
        if self._naming == "plain":
            return f"{call.base_url}/{name.account}/{name.name}"
        scheme, _, host = call.base_url.partition("://")
        if self._naming == "path" or _ADDRESS.match(host):
            return f"{call.base_url}/queue/{name.region}/{name.account}/{name.name}"
        return f"{scheme}://sqs.{name.region}.{_OWN_PREFIX.sub('', host, count=1)}/{name.account}/{name.name}"

    def read(self, call: Call, url: str) -> ResourceName:
        """The queue that a URL or a bare name means, for a caller of an account and a region.

        A URL's last two segments are account and name, whatever the host. It means a queue of the region it names,
        where URLs name any, and of the caller's region otherwise.

        Raises:
            AwsError: `InvalidAddress`: the text is neither.
        """
        if "/" not in url:
            return _by_name(url, call.account, call.region)
        return (_plain if self._naming == "plain" else _with_region)(url, call.region)


def _by_name(name: str, account: str, region: str) -> ResourceName:
    if not 0 < len(name) <= URL_CHARS_MAX:
        raise _invalid(name)
    return ResourceName(account, region, name)


# Clients repeat their queues' URLs in every request. What is refused is never remembered.
@lru_cache(maxsize=4096)
def _plain(url: str, region: str) -> ResourceName:
    if len(url) > URL_CHARS_MAX:
        raise _invalid(url)
    if _WITHOUT_PATH.fullmatch(url):
        raise no_such_queue()
    account, _, name = url.rstrip("/").rpartition("/")
    account = account.rpartition("/")[2]
    if not name or not account.isdigit():
        raise _invalid(url)
    return ResourceName(account, region, name)


@lru_cache(maxsize=4096)
def _with_region(url: str, region: str) -> ResourceName:
    if len(url) > URL_CHARS_MAX:
        raise _invalid(url)
    match = _PATH_WITH_REGION.fullmatch(url) or _HOST_WITH_REGION.fullmatch(url)
    return _plain(url, region if match is None else match[1])


def _invalid(url: str) -> Exception:
    url_text = url if len(url) <= URL_CHARS_MAX else f"{url[:URL_CHARS_MAX]}…"
    return error("InvalidAddress", f"The address {url_text} is not valid for this endpoint.")
