"""The request by which a dead letter would be delivered once more, as a person reads it and repeats it by hand.

What was sent before is not kept: the request is made anew, from the message and its subscription as they stand. What
would let a reader act in somebody's name is masked: the query of the address, headers that a subscription adds, and the
link by which its receiver unsubscribes.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Final, NamedTuple

from redrive.console.visit import Visit
from redrive.engine.operations import DeadLetter

#: A longer body is not shown a second time, nor as a command.
BODY_CHARS_MAX: Final = 8 * 1024
_MASK: Final = "***"
_WEB: Final = frozenset({"http", "https"})
_TELLING: Final = ("x-amz-sns-", "x-amzn-trace-id", "aeg-", "ce-", "webhook-request-", "traceparent")
_USUAL: Final = frozenset({"accept-encoding", "connection", "content-type", "origin", "user-agent"})
_ENCODINGS: Final = frozenset({"accept-encoding", "connection"})  # which curl sets, as it can read answers
_UNSUBSCRIBES: Final = re.compile(r'(Action=Unsubscribe&SubscriptionArn=[^&"]*&Token=)[^"&]+')


class HttpRequest(NamedTuple):
    """A request over HTTP with its secrets masked."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: str  # Empty: it is longer than `BODY_CHARS_MAX`

    @property
    def is_masked(self) -> bool:
        """True if something has to be filled in before the request can be repeated."""
        return self.url.endswith("?…") or _MASK in self.url or _MASK in self.headers.values()

    @property
    def curl(self) -> str:
        """The command that makes it."""
        headers = [
            f"-H {shlex.quote(f'{name}: {value}')}"
            for name, value in self.headers.items()
            if name.lower() not in _ENCODINGS
        ]
        parts = [f"curl -i -X {self.method} {shlex.quote(self.url)}", *headers]
        return " \\\n  ".join([*parts, f"--data-raw {shlex.quote(self.body)}"])


async def request_of(visit: Visit, letter: DeadLetter) -> HttpRequest | None:
    """The request of one more attempt; None: it is not for a web address, or its body is not shown."""
    subscription = letter.from_subscription
    if subscription is None or subscription.protocol not in _WEB or visit.body_of(letter.delivery) is None:
        return None
    try:
        request = await visit.engine.operations.request_of(letter)
    # It came here by other ways, and has not what it takes.
    except (KeyError, TypeError, ValueError):
        return None
    if request is None:
        return None
    headers = {**request.headers, "Content-Type": request.content_type}
    body = _UNSUBSCRIBES.sub(rf"\1{_MASK}", request.body.decode())
    return HttpRequest(
        request.method,
        subscription.redacted_endpoint,
        {name: value if _may_be_shown(name.lower()) else _MASK for name, value in headers.items()},
        body if len(body) <= BODY_CHARS_MAX else "",
    )


def _may_be_shown(name: str) -> bool:
    return name in _USUAL or (name.startswith(_TELLING) and "key" not in name)
