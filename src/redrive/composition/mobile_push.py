"""Mobile push: SNS's platform applications, and the services of Apple, Google and Amazon behind them."""

from collections.abc import Mapping
from dataclasses import replace

from redrive.aws.sns.devices.log import DeviceLog
from redrive.aws.sns.devices.push import DeviceEndpoint
from redrive.aws.sns.parts import mobile_push
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Lifecycle
from redrive.endpoints.on_use import EndpointOnUse
from redrive.engine.ports import Endpoint
from redrive.runtime.machine import SystemClock
from redrive.settings import read_push_endpoints


def extension(core: Core) -> Extension:
    """Devices are pushed to through their services; what came of it is logged and counted."""
    urls = read_push_endpoints(core.settings.push_endpoints)
    services = EndpointOnUse(lambda: _services(core, urls))
    devices = DeviceEndpoint(core.engine, services)
    telemetry = core.telemetry
    log = DeviceLog(telemetry.logs, core.runtime.rng, core.stream, devices.application_of, telemetry.count)
    return Extension(
        delivery=DeliveryParts(
            endpoints={"application": devices},
            sns=replace(mobile_push(core.engine), logs={"application": log}),
        ),
        lifecycle=Lifecycle(
            close=(services.close,),
        ),
    )


def _services(core: Core, urls: Mapping[str, str]) -> Endpoint:
    from redrive.endpoints.push.endpoint import PushEndpoint  # noqa: PLC0415 - which brings JWT and X.509

    return PushEndpoint(SystemClock().now, core.runtime.rng, urls, core.ca_file)
