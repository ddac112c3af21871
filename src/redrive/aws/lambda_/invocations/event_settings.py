"""Settings of asynchronous invocations: retries, age and destinations, for each version and alias by itself."""

import re
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.backlogs import put_backlogs_in
from redrive.aws.lambda_.documents.errors import PAGES, absent_as, invalid, no_such
from redrive.aws.lambda_.documents.lookup import Lookup, function_in, key_beginning
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference, arn_of
from redrive.aws.lambda_.documents.records import EVENTS, FUNCTION, EventSettings, qualified_key
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

_DESTINATION: Final = re.compile(
    r"arn:aws[a-z-]*:((sqs|sns):[a-z0-9-]+:\d{12}:[\w-]+|lambda:[a-z0-9-]+:\d{12}:function:[\w-]+(:[\w$-]+)?"
    r"|s3:::[a-z0-9.-]{3,63})"
)
_BUS: Final = re.compile(r"arn:aws[a-z-]*:events:.*")
_BUCKET: Final = ":s3:::"
_ARN_OF_SERVICE: Final = re.compile(r"[^:]*:[^:]*:(sqs|sns|lambda|s3)(:.*)?", re.DOTALL)
_NOTHING: Final = "You must specify at least one of error handling or destination setting."
_ITSELF: Final = "You can't specify the function as a destination for itself."


class EventSettingsOperations:
    """Puts, changes, shows and deletes the settings."""

    def __init__(self, engine: Engine, lookup: Lookup, roles: ExecutionRoles) -> None:
        """Use this engine; destinations must be permitted to these roles."""
        self._engine = engine
        self._lookup = lookup
        self._roles = roles

    async def put_function_event_invoke_config(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html; it replaces all."""
        return await self._set(call, params, "PutFunctionEventInvokeConfig", merges=False)

    async def update_function_event_invoke_config(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionEventInvokeConfig.html; it merges."""
        return await self._set(call, params, "UpdateFunctionEventInvokeConfig", merges=True)

    async def get_function_event_invoke_config(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        reference = reference._replace(qualifier=reference.qualifier or LATEST)
        with absent_as(_unset(reference)):  # an absent function has no settings either (recorded)
            await self._lookup.authorized_target(call, reference, "GetFunctionEventInvokeConfig")
        key = qualified_key(reference.name, reference.qualifier or LATEST)
        settings = await self._engine.resources.documents.get(EVENTS, key)
        if settings is None or settings.modified_at is None:
            raise _unset(reference)
        return _render(settings)

    async def delete_function_event_invoke_config(self, call: Call, params: Structure) -> Structure:
        reference = await self._reference(call, params, "DeleteFunctionEventInvokeConfig")

        async def decide(draft: Draft) -> None:
            function = await function_in(draft, reference)
            key = qualified_key(reference.name, reference.qualifier or LATEST)
            settings = await draft.get(EVENTS, key)
            if settings is None or settings.modified_at is None:
                raise _unset(reference)
            defaults = EventSettings(settings.function, settings.qualifier)
            draft.put(EVENTS, key, defaults)
            await put_backlogs_in(draft, self._engine.resources, function, defaults)

        await self._engine.resources.write(decide)
        return {}

    async def list_function_event_invoke_configs(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"])
        operation = "ListFunctionEventInvokeConfigs"
        await self._lookup.function(call, reference, operation)
        after = PAGES.after(operation, params)
        documents = await self._engine.resources.documents.find(EVENTS, key_beginning(reference.name), after)
        configured = [settings for settings in documents if settings.modified_at is not None]
        return PAGES.of(
            operation,
            params,
            configured,
            _render,
            lambda settings: qualified_key(reference.name, settings.qualifier),
        )

    async def _reference(self, call: Call, params: Structure, action: str) -> FunctionReference:
        """The version or alias that is meant; raises AwsError if there is none, or the caller may not."""
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        with absent_as(no_such("The function doesn't exist.")):
            await self._lookup.authorized_target(call, reference, action)
        return FunctionReference(reference.name, reference.qualifier or LATEST)

    async def _set(self, call: Call, params: Structure, action: str, *, merges: bool) -> Structure:
        """Write the settings of a request; those that it does not name stay if `merges`, else they end."""
        if not any(
            name in params
            for name in ("MaximumRetryAttempts", "MaximumEventAgeInSeconds", "DestinationConfig")
        ):
            raise invalid(_NOTHING)
        reference = await self._reference(call, params, action)
        key = qualified_key(reference.name, reference.qualifier or LATEST)

        async def decide(draft: Draft) -> EventSettings:
            function = await function_in(draft, reference)
            before = await draft.get(EVENTS, key)
            if merges and (before is None or before.modified_at is None):
                raise _unset(reference)
            defaults = EventSettings(reference.name, reference.qualifier or LATEST)
            after = _with_changes(before if merges and before is not None else defaults, params)
            after = replace(after, modified_at=call.now)
            target = await self._lookup.version(function, reference.qualifier)
            if target is not None and "DestinationConfig" in params:
                for arn in (after.on_success, after.on_failure):
                    await _check_function_in(draft, reference, arn)
                    await self._roles.check_destination(target.configuration, arn)
            draft.put(EVENTS, key, after)
            await put_backlogs_in(draft, self._engine.resources, function, after)
            return after

        return _render(await self._engine.resources.write(decide))


async def _check_function_in(draft: Draft, reference: FunctionReference, arn: str) -> None:
    """Refuse a function of the same account as a destination that is not there."""
    target = names.of_arn(arn)
    if target is None or target.name.account != reference.name.account:
        return
    if await draft.get(FUNCTION, target.name.key) is None:
        raise _no_destination(arn)


def _with_changes(before: EventSettings, params: Structure) -> EventSettings:
    """The settings with those that a request changes."""
    destinations = params.get("DestinationConfig") or {}
    return replace(
        before,
        retries=params.get("MaximumRetryAttempts", before.retries),
        age_seconds=params.get("MaximumEventAgeInSeconds", before.age_seconds),
        on_success=_destination(before, destinations, "OnSuccess", before.on_success),
        on_failure=_destination(before, destinations, "OnFailure", before.on_failure),
    )


def _destination(settings: EventSettings, destinations: Structure, kind: str, before: str) -> str:
    """The destination of a kind in a request, or that from before; empty: none. Raises AwsError."""
    if kind not in destinations:
        return before
    arn: str = destinations[kind].get("Destination", "")
    if not arn:
        return ""
    if _BUS.fullmatch(arn):
        raise invalid(
            f"Redrive has no EventBridge, so {arn} cannot be a destination: queues, topics and functions can, and for"
            " failures buckets."
        )
    if not _ARN_OF_SERVICE.fullmatch(arn) or (_BUCKET in arn and kind == "OnSuccess"):
        raise invalid(f"The provided destination config {_java(destinations)} is invalid.")
    if not _DESTINATION.fullmatch(arn):
        raise _no_destination(arn)
    reference = names.of_arn(arn)
    if reference is not None and reference.name == settings.function:
        raise invalid(_ITSELF)
    return arn


def _no_destination(arn: str) -> AwsError:
    return invalid(f"The destination ARN {arn} is invalid.")


def _java(destinations: Structure) -> str:
    """Destinations as Java prints them, which is how Lambda names them in an error."""
    parts = []
    for kind in ("OnSuccess", "OnFailure"):
        arn = destinations.get(kind, {}).get("Destination")
        value = f"{kind}(destination={arn})" if arn else "null"
        parts.append(f"{kind[0].lower()}{kind[1:]}={value}")
    return f"DestinationConfig({', '.join(parts)})"


def _unset(reference: FunctionReference) -> AwsError:
    return no_such(f"The function {reference.arn} doesn't have an EventInvokeConfig")


def _render(settings: EventSettings) -> Structure:
    description: Structure = {
        "DestinationConfig": {
            kind: {"Destination": arn} if arn else {}
            for kind, arn in (("OnFailure", settings.on_failure), ("OnSuccess", settings.on_success))
        },
        "FunctionArn": arn_of(settings.function, settings.qualifier),
        "LastModified": settings.modified_at,
    }
    if settings.retries is not None:
        description["MaximumRetryAttempts"] = settings.retries
    if settings.age_seconds is not None:
        description["MaximumEventAgeInSeconds"] = settings.age_seconds
    return description
