"""Control routes about what belongs to the caller: who asks, about which of their resources, and what can go wrong.

Operators name a queue by its name, ARN or URL, a topic by its name or ARN.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import orjson

from redrive.aws.gateway.authentication import OWN_ROUTES, Authentication, Caller, TrustAll
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.errors import AwsError
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName

PAGE_MAX: Final = 1000  # of any listing: what is counted or read for one answer
SIGNING_NAME = OWN_ROUTES  # the service a request is signed for, where signatures are required

_REFUSED: Final = 400
#: Notes a change: whose things, who, the request, and its answer.
Audit = Callable[[ResourceName, str, Request, Response], Awaitable[None]]

# Answers a request about the things of an account in a region: a name without its last part.
OwnedRoute = Callable[[Request, ResourceName], Awaitable[Response]]


class ControlRefusal(Exception):  # noqa: N818 - an answer, not a failure
    """The request cannot be used; the message says why."""


class OwnedRoutes:
    """Routes by method and path, which answer a caller about that caller's own resources."""

    def __init__(
        self,
        authentication: Authentication,
        routes: Mapping[tuple[str, str], OwnedRoute],
        audit: Audit | None = None,
    ) -> None:
        """Answer by routes, of a method and a path each; without `audit`, nothing that is kept changes here."""
        self._authentication = authentication
        self._routes = dict(routes)
        self._audit = audit

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        route = self._routes.get((method_of(request), request.path))
        if route is None:
            return json_answer(404, {"message": f"no route {request.method} {request.path}"})
        try:
            caller = await self._authentication.caller(request, SIGNING_NAME)
            return await self._run_and_audit(route, request, self._owner(request, caller), caller)
        except AwsError as error:
            return json_answer(error.status, {"message": error.message})
        except ControlRefusal as error:
            return json_answer(400, {"message": str(error)})
        except StoreUnavailable as error:
            return json_answer(503, {"message": str(error)})
        except RedriveError as error:
            return json_answer(409, {"message": f"{type(error).__name__}: {error}"})

    async def _run_and_audit(
        self, route: OwnedRoute, request: Request, owner: ResourceName, caller: Caller
    ) -> Response:
        response = await route(request, owner)
        if self._audit is not None and method_of(request) != "GET" and response.status < _REFUSED:
            await self._audit(owner, caller.principal.name, request, response)
        return response

    def _owner(self, request: Request, caller: Caller) -> ResourceName:
        """The owner that a request is about: the caller's account and region, or the Azure group in the query.

        The Azure subscriptions of an account are those whose GUID ends in it; without authentication, all of them.
        """
        account = caller.principal.account
        if request.record is not None:
            request.record.account = account
        arguments = parameters(request)
        subscription = arguments.get("subscription", "").lower()
        if not subscription:
            return ResourceName(account, caller.region)
        trusts_all = isinstance(self._authentication, TrustAll)
        if not trusts_all and not subscription.endswith(f"-{account}"):
            raise ControlRefusal(
                f"the Azure subscription {subscription} does not belong to account {account}:"
                f" its id must end in -{account}"
            )
        return ResourceName(subscription, arguments.get("group", "").lower())


def method_of(request: Request) -> str:
    """The method by which a route is found: who asks for the head alone is answered as for the whole."""
    return "GET" if request.method == "HEAD" else request.method


def parameters(request: Request) -> Mapping[str, str]:
    """The parameters of the query; of a repeated one, the last value."""
    return {name: values[-1] for name, values in parse_qs(request.query).items()}


def document_of(body: bytes) -> Mapping[str, Any]:
    """The body as a JSON object; raises ControlRefusal if it is not one."""
    try:
        document = orjson.loads(body)
    except ValueError:
        raise ControlRefusal("the body is not JSON") from None
    if not isinstance(document, dict):
        raise ControlRefusal("the body is not a JSON object")
    return document


def number(name: str, value: object, least: int, most: int = 2**63 - 1) -> int:
    """A number within bounds, from JSON or from a query; `name` is the member or parameter.

    Raises:
        ControlRefusal: It is not a number, or out of bounds.
    """
    text = str(value)
    if not (text.isascii() and text.isdigit()) or not least <= int(text[:20]) <= most:
        bounds = f"from {least} to {most}" if most < 2**63 - 1 else f"of at least {least}"
        raise ControlRefusal(f'"{name}" must be a number {bounds}, not {text!r}')
    return int(text)


def page_of(arguments: Mapping[str, str], least_after: str = "") -> tuple[str, int]:
    """After which a page of a listing begins, and how many it has."""
    return arguments.get("after", least_after), number("limit", arguments.get("limit", "100"), 1, PAGE_MAX)


def json_answer(status: int, document: Mapping[str, Any]) -> Response:
    """A JSON answer."""
    return Response(status, orjson.dumps(document))


_URL_PARTS: Final = 2  # of a queue's URL behind the host: account and name


def queue_named(where: ResourceName, text: object) -> ResourceName:
    """The queue that a name, an ARN or a URL stands for, in the account and region that is asked about.

    Raises:
        ControlRefusal: Nothing is named, or what is another account's.
    """
    name = _text("queue", text)
    if name.startswith("arn:"):
        return _by_arn(where, name, "sqs")
    if "://" in name:
        return _by_url(where, name)
    return where._replace(name=name)


def topic_named(where: ResourceName, text: object) -> ResourceName:
    """The topic that is meant, by name or ARN.

    Raises:
        ControlRefusal: Nothing is named, or what is another account's.
    """
    name = _text("topic", text)
    return _by_arn(where, name, "sns") if name.startswith("arn:") else where._replace(name=name)


def subscription_named(where: ResourceName, topic: object, name: object) -> tuple[ResourceName, str]:
    """The topic and the id of the subscription that is meant.

    Args:
        where: Whose things are asked about.
        topic: A name or an ARN; a subscription's ARN stands for both.
        name: The subscription's id; its ARN stands for both.

    Raises:
        ControlRefusal: Nothing is named, or what is another account's.
    """
    arn = name if isinstance(name, str) and name.startswith("arn:") else topic
    if isinstance(arn, str) and arn.startswith("arn:"):
        topic_and_id = _by_arn(where, arn, "sns")
        topic_name, _, subscription_id = topic_and_id.name.partition(":")
        if subscription_id:  # else it is the topic's alone
            return topic_and_id._replace(name=topic_name), subscription_id
    return topic_named(where, topic), _text("subscription", name)


def _text(kind: str, text: object) -> str:
    if not isinstance(text, str) or not text:
        raise ControlRefusal(f'"{kind}" must be a string that is not empty')
    return text


def _by_arn(where: ResourceName, text: str, service: str) -> ResourceName:
    """The name that an ARN of this service stands for."""
    try:
        arn = parse_arn(text)
    except ValueError as error:
        raise ControlRefusal(str(error)) from None
    if arn.service != service:
        raise ControlRefusal(f"{text} is of {arn.service}, not of {service}")
    return _require_own(where, ResourceName(arn.account, arn.region, arn.resource), text)


def _by_url(where: ResourceName, text: str) -> ResourceName:
    """The queue that a URL of SQS stands for; its region is that of the request."""
    parts = urlsplit(text).path.strip("/").split("/")
    if len(parts) != _URL_PARTS:
        raise ControlRefusal(f"{text} is not the URL of a queue: http://HOST/ACCOUNT/NAME")
    account, name = parts
    return _require_own(where, ResourceName(account, where.region, name), text)


def _require_own(where: ResourceName, queue_name: ResourceName, text: str) -> ResourceName:
    """The name, if it is of the account that asks."""
    if queue_name.account != where.account:
        raise ControlRefusal(
            f"{text} belongs to account {queue_name.account}, and the request is made as account {where.account}"
        )
    return queue_name
