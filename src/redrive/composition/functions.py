"""The setting of functions that callers bring, read when the server starts: what it cannot do it says at once."""

from functools import partial
from typing import Final

from redrive.aws.gateway.identities import SERVICE_SECONDS
from redrive.composition.core import Core
from redrive.functions import isolation, processes
from redrive.functions.gateway import ServerAddress
from redrive.functions.setting import Setting
from redrive.model.errors import Refused
from redrive.model.function import FunctionVersion, Isolation
from redrive.runtime.machine import SystemClock
from redrive.runtime.simulated import SimulatedClock
from redrive.settings import SettingsInvalid

#: A process outlives leaps of a simulated clock, and with it its credentials: a hundred years.
_SIMULATED_SECONDS: Final = 100 * 365 * 24 * 60 * 60


def prepare(core: Core) -> Setting:
    """The setting of functions; ends the processes of functions that a dead server has left.

    Raises:
        SettingsInvalid: This machine lacks something that the isolation needs.
    """
    setting = _function_setting(core)
    processes.end_leftovers(setting.tools)
    return setting


def _function_setting(core: Core) -> Setting:
    """The setting that all environments share; SettingsInvalid where this machine cannot isolate them so."""
    settings = core.settings
    isolation_kind = Isolation(settings.functions_isolation)
    try:
        tools = isolation.find_tools(isolation_kind)
    except Refused as refusal:
        raise SettingsInvalid(f"functions_isolation {isolation_kind.value}: {refusal}") from None
    clock, endpoint = SystemClock(), ServerAddress.of(core.base_url)
    url = endpoint.url_inside if isolation_kind is Isolation.BUBBLEWRAP else core.base_url
    return Setting(
        clock,
        clock.elapsed_ms,
        isolation_kind,
        tools,
        endpoint,
        settings.functions_java_client,
        core.secret.key("users of functions"),
        partial(_variables, core, url),
    )


async def _variables(core: Core, url: str, function: FunctionVersion) -> dict[str, str]:
    """The variables that let a function call this server as its role."""
    simulated = isinstance(core.runtime.clock, SimulatedClock)
    credentials = await core.sessions.for_function(
        function.role,
        function.name.name,
        function.name.account,
        function.name.region,
        _SIMULATED_SECONDS if simulated else SERVICE_SECONDS,
    )
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": credentials.access_key_id,
        "AWS_SECRET_ACCESS_KEY": credentials.secret,
        "AWS_SESSION_TOKEN": credentials.token,
    }
