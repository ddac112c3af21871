"""Calls from within: a part of this server asks another for an operation, as a client would, without the wire.

So each service's own rules hold, and its own words say what is wrong.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from redrive.access.patterns import Values
from redrive.access.principals import Principal
from redrive.aws.gateway.authorization import check_own_policies
from redrive.aws.kit.call import Call
from redrive.aws.kit.service import Facades, facade_of
from redrive.aws.wire.service import Operation, Service
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import DeathRecord, Runtime
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.model.http import Request, StreamedBody
from redrive.model.names import id_text

BASE_URL: Final = "http://localhost"  # of queue URLs that go from one operation to the next
_NAME: Final = re.compile(r"\{([\w-]+)\+?\}")


class InnerCalls:
    """Calls operations of the services that this server offers."""

    def __init__(self, facades: Facades, runtime: Runtime, base_url: str = BASE_URL) -> None:
        """Call services within this server.

        Args:
            facades: By botocore's names of the services; one that comes later is found as well.
            runtime: Time, and ids of calls.
            base_url: What URLs in answers begin with, where they are told to others.
        """
        self._base_url = base_url
        self._facades = facades
        self._runtime = runtime

    def offers(self, service: str) -> bool:
        """True if this server offers a service, by botocore's name."""
        return service in self._facades

    async def has(self, service: str, operation: str) -> bool:
        """True if this server offers an operation of a service, by botocore's names."""
        facade = await facade_of(self._facades, service)
        return facade is not None and operation in facade.operations

    async def call(
        self,
        service: str,
        operation: str,
        params: Structure,
        caller: Principal,
        region: str,
        headers: Mapping[str, str] | None = None,
        keys: Mapping[str, Values] | None = None,
        died: DeathRecord | None = None,
        *,
        of_stack: bool = False,
    ) -> Structure:
        """Call an operation.

        Args:
            service: Botocore's name of the service.
            operation: The operation's name.
            params: Its parameters.
            caller: The principal that asks.
            region: Where it asks.
            headers: Of the request, if the operation looks at any.
            keys: Condition keys of policies that follow from why the call is made.
            died: The record of the dead letter that the call sends on, if it sends one.
            of_stack: See `Call`.

        Raises:
            AwsError: The service refuses.
            StoreUnavailable: The store is unavailable; the call may have been carried out.
        """
        operation_model = Service.load(service).operation(operation)
        operation_model.check(params)
        facade = await facade_of(self._facades, service)
        if facade is None:
            raise KeyError(service)
        call = Call(
            Request(operation_model.method, path_of(operation_model, params), "", dict(headers or {}), b""),
            caller,
            region,
            self._runtime.clock.now(),
            id_text(self._runtime.message_id()),
            self._base_url,
            keys,
            died,
            of_stack,
        )
        await check_own_policies(call, facade, service, operation, params)
        try:
            result = await facade.operations[operation](call, params)
        except StoreUnavailable:
            raise
        except RedriveError as error:
            raise facade.translated(error) from error
        body = result.get("Body")
        return {**result, "Body": await body.whole()} if isinstance(body, StreamedBody) else result


@lru_cache(maxsize=1024)
def _names(path: str) -> tuple[str, ...]:
    return tuple(_NAME.findall(path))


def path_of(operation: Operation, params: Structure) -> str:
    """The path that a client would ask for, which some services' policies name."""
    path = operation.path.partition("?")[0]
    names = _names(path)
    if not names:
        return path
    by_name = {member.json_name: name for name, member in operation.input.members.items()}
    values = {name: params.get(by_name[name], "") for name in names}
    return _NAME.sub(lambda match: quote(str(values[match[1]]), safe=""), path)
