"""Access to queues: the queue that a URL names, the permission of its caller, and FIFO quotas.

Quotas are off unless asked for (`--fifo-quotas`), since a server of one's own has no reason to refuse what it can carry:
300 calls a second of each of SendMessage, ReceiveMessage and DeleteMessage, batched or not. A queue with
FifoThroughputLimit perMessageGroupId has no such limit. Each node counts by itself.
"""

import re
from collections.abc import Awaitable
from functools import lru_cache
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.sqs import names
from redrive.aws.sqs.errors import denied, error, no_such_queue
from redrive.engine.resources import Queues
from redrive.model.names import ResourceName
from redrive.model.queue import Queue

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
        """The queue that a URL or a bare name means to the caller.

        A URL's last two segments are account and name, whatever the host. It means a queue of the region it names,
        where URLs name any, and of the caller's region otherwise.

        Raises:
            AwsError: `InvalidAddress`: the text is neither.
        """
        if "/" not in url:
            return _by_name(url, call.account, call.region)
        return (_name_in_url if self._naming == "plain" else _name_and_region_in_url)(url, call.region)


def _by_name(name: str, account: str, region: str) -> ResourceName:
    if not 0 < len(name) <= URL_CHARS_MAX:
        raise _invalid(name)
    return ResourceName(account, region, name)


# Clients repeat their queues' URLs in every request. What is refused is never remembered.
@lru_cache(maxsize=4096)
def _name_in_url(url: str, region: str) -> ResourceName:
    """The queue that a URL means; only the URL's last two parts count, the account and the name."""
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
def _name_and_region_in_url(url: str, region: str) -> ResourceName:
    if len(url) > URL_CHARS_MAX:
        raise _invalid(url)
    match = _PATH_WITH_REGION.fullmatch(url) or _HOST_WITH_REGION.fullmatch(url)
    return _name_in_url(url, region if match is None else match[1])


def _invalid(url: str) -> Exception:
    url_text = url if len(url) <= URL_CHARS_MAX else f"{url[:URL_CHARS_MAX]}…"
    return error("InvalidAddress", f"The address {url_text} is not valid for this endpoint.")


CALLS_PER_SECOND = 300


class QueueQuotas:
    """Counts calls by queue and method, second by second."""

    def __init__(self, *, enforced: bool) -> None:
        self._enforced = enforced
        self._second = 0
        self._calls: dict[tuple[int, str], int] = {}

    def take(self, queue: Queue, method: str, now: int) -> None:
        """Count one call; raises AwsError (`RequestThrottled`: this second's calls are used up)."""
        if not self._enforced or not queue.ordered:
            return
        if queue.attributes.get("FifoThroughputLimit") == "perMessageGroupId":
            return
        second = now // 1000
        if second != self._second:
            self._second = second
            self._calls.clear()
        calls = self._calls.get((queue.id, method), 0) + 1
        if calls > CALLS_PER_SECOND:
            raise error("RequestThrottled", "Rate exceeded")
        self._calls[queue.id, method] = calls


# What a policy cannot give to another account ("Limitations of Amazon SQS custom policies", developer guide).
_OWNER_ALONE = frozenset(
    {
        "AddPermission",
        "CancelMessageMoveTask",
        "CreateQueue",
        "DeleteQueue",
        "ListMessageMoveTasks",
        "ListQueueTags",
        "RemovePermission",
        "SetQueueAttributes",
        "StartMessageMoveTask",
        "TagQueue",
        "UntagQueue",
    }
)


_RECALLED_MAX: Final = 4_096  # URLs whose queues are remembered until a document changes


class QueueAccess:
    """Finds the queue that a call names, for an action that its caller may do there."""

    def __init__(self, queues: Queues, urls: QueueUrls) -> None:
        self._queues = queues
        self.urls = urls
        self._recalled: dict[tuple[str, str, str], Queue] = {}
        self._changes = -1  # `Queues.changes` when those were looked up

    def if_open(self, call: Call, url: str) -> Queue | None:
        """The queue of a URL if this node remembers it and the caller may do anything with it; None: `at` decides.

        Nearly always there is neither a policy of the queue nor of the caller (`Call.is_open`), so that a call is spared
        a coroutine. For actions that a policy could give to another account.
        """
        changes = self._queues.changes
        if changes != self._changes or len(self._recalled) > _RECALLED_MAX:
            self._changes = changes
            self._recalled.clear()
        request_key = (url, call.region, call.principal.account)
        queue = self._recalled.get(request_key)
        if queue is None:
            queue = self._queues.known(self.urls.read(call, url))
            if queue is None:
                return None
            self._recalled[request_key] = queue
        return queue if call.is_open(queue.name.account, queue.attributes.get("Policy")) else None

    def at(self, call: Call, url: str, action: str) -> Awaitable[Queue]:
        """The queue of a URL. It only passes on a coroutine, since a second one would cost every call.

        Raises:
            AwsError: There is no such queue, or the caller may not.
        """
        return self.existing_queue(call, self.urls.read(call, url), action)

    async def existing_queue(self, call: Call, name: ResourceName, action: str) -> Queue:
        """The queue of a name.

        Raises:
            AwsError: There is no such queue, or the caller may not.
        """
        queue = self._queues.known(name) or await self._queues.get(name)
        if queue is None:
            raise no_such_queue()
        check(call, queue, action)
        return queue


def check_not_at_queue(call: Call, action: str) -> None:
    """Refuse an action of the service at a queue's URL, as Query can ask it; raises AwsError (`InvalidAction`)."""
    if "x-amz-target" not in call.request.headers and call.request.path.count("/") > 1:
        text = f"The action {action} is not valid for this endpoint."
        raise error("UnknownOperationException", text)


def check(call: Call, queue: Queue, action: str) -> None:
    """Refuse an action on a queue that the caller has no permission for; raises AwsError (`AccessDenied`)."""
    owner = queue.name.account
    policy = queue.attributes.get("Policy")
    permitted = action not in _OWNER_ALONE or call.account == owner
    if permitted and call.is_open(owner, policy):
        return  # nearly every call: it needs no ARN
    arn = names.arn_of(queue.name)
    decision = call.decide(f"sqs:{action}", arn, owner, policy)
    if not (permitted and decision.allowed):
        raise denied(call.principal.name, f"sqs:{action}", arn, decision)
