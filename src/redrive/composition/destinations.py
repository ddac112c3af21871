"""Destinations that are no facade's own: webhooks, mail, blobs, brokers, functions and delivery streams elsewhere."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension
from redrive.endpoints.on_use import EndpointOnUse
from redrive.engine.ports import Endpoint
from redrive.runtime.machine import SystemClock
from redrive.settings import address_of, aws_endpoint_of, read_addresses, read_aws_endpoints

logger = logging.getLogger(__name__)

#: The protocol of functions on other servers, where this one runs functions as well and decides for each.
ELSEWHERE: Final = "lambda.elsewhere"
#: The protocol of delivery streams on other servers; this one decides for each.
STREAMS_ELSEWHERE: Final = "firehose.elsewhere"


def extension(core: Core) -> Extension:
    """The endpoints that deliveries are pushed to; mail only where a relay is named."""
    settings = core.settings
    address = partial(address_of, read_addresses(settings.azure_endpoints))
    endpoints: dict[str, Endpoint] = {
        "http": core.web,
        "https": core.web,
        "blob": EndpointOnUse(lambda: _blobs(core, address)),
    }
    if settings.azure_endpoints:
        endpoints |= _brokers(core, address)
    if settings.aws_endpoints:
        endpoints |= _aws(core)
    if settings.smtp_host:
        endpoints |= _mail(core)
    return Extension(delivery=DeliveryParts(endpoints=endpoints))


def _blobs(core: Core, address: Callable[[str], str | None]) -> Endpoint:
    from redrive.endpoints.blob import BlobEndpoint  # noqa: PLC0415 - whose library takes 4 MB of memory

    return BlobEndpoint(SystemClock().now, address, core.settings.blobs_at, core.ca_file)


def _mail(core: Core) -> dict[str, Endpoint]:
    """Mail, as text and as JSON, by the relay that the settings name."""
    from redrive.endpoints.email import EmailEndpoint, Relay  # noqa: PLC0415 - for servers with a relay alone

    settings = core.settings
    relay = Relay(
        settings.smtp_host,
        settings.smtp_port,
        settings.smtp_sender,
        settings.smtp_user or None,
        settings.smtp_password or None,
        settings.smtp_starttls,
        core.ca_file,
    )
    mail = EmailEndpoint(core.runtime.clock.now, relay)
    return {"email": mail, "email-json": mail}


def _brokers(core: Core, address: Callable[[str], str | None]) -> dict[str, Endpoint]:
    """Storage queues and message brokers; none where their libraries are not installed, which few servers need."""
    try:
        from redrive.endpoints.azure.amqp import AmqpEndpoint  # noqa: PLC0415 - of an extra
        from redrive.endpoints.azure.storage_queue import StorageQueueEndpoint  # noqa: PLC0415 - of an extra
    except ImportError as error:
        logger.warning(
            "destinations.missing: %s is not installed; pip install azure-storage-queue python-qpid-proton",
            error.name,
        )
        return {}
    now = SystemClock().now
    return {
        "amqp": AmqpEndpoint(now, core.runtime.rng, address, core.ca_file),
        "storage-queue": StorageQueueEndpoint(now, address, core.ca_file),
    }


def _aws(core: Core) -> dict[str, Endpoint]:
    """Functions and delivery streams, on whatever servers the settings name."""
    # botocore takes 70 ms to import, and few servers need these.
    from redrive.endpoints.aws.calls import AwsClient, AwsCredentials  # noqa: PLC0415 - as above
    from redrive.endpoints.aws.firehose import StreamEndpoint  # noqa: PLC0415 - as above
    from redrive.endpoints.aws.function import FunctionEndpoint  # noqa: PLC0415 - as above

    now, by_service = SystemClock().now, read_aws_endpoints(core.settings.aws_endpoints)
    client = AwsClient(core.web, partial(aws_endpoint_of, by_service), AwsCredentials(now))
    function = ELSEWHERE if core.settings.runs_functions else "lambda"
    return {function: FunctionEndpoint(now, client), STREAMS_ELSEWHERE: StreamEndpoint(now, client)}
