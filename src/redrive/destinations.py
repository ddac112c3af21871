"""Endpoints made from the settings: the part of the composition root that knows them."""

import logging
import ssl
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

from redrive.endpoints.blob import BlobEndpoint
from redrive.endpoints.email import EmailEndpoint, Relay
from redrive.endpoints.http import HttpEndpoint, HttpPolicy
from redrive.endpoints.push.endpoint import PushEndpoint
from redrive.endpoints.sms.endpoint import SmsEndpoint
from redrive.endpoints.sms.gateway import read_gateway
from redrive.engine.engine import Engine
from redrive.engine.ports import Endpoint, Runtime
from redrive.protocols.aws.sns.sms.telephones import Telephones
from redrive.runtime.clock import SystemClock
from redrive.settings import (
    Settings,
    SettingsInvalid,
    address_of,
    aws_endpoint_of,
    read_addresses,
    read_aws_endpoints,
    read_networks,
    read_push_endpoints,
)

logger = logging.getLogger(__name__)


def make_endpoints(settings: Settings, runtime: Runtime) -> dict[str, Endpoint]:
    """The endpoints that deliveries are pushed to, by protocol; mail only where a relay is named."""
    ca_file = _ca_file(settings)
    http = HttpEndpoint(SystemClock().now, runtime.chance, _http_policy(settings, ca_file))
    address = partial(address_of, read_addresses(settings.azure_endpoints))
    blobs = BlobEndpoint(SystemClock().now, address, settings.blob_store or _blob_folder(settings), ca_file)
    endpoints: dict[str, Endpoint] = {"http": http, "https": http, "blob": blobs}
    endpoints["push"] = _push_services(settings.push_endpoints, ca_file, runtime)
    if settings.azure_endpoints:
        endpoints |= _named_destinations(address, ca_file, runtime)
    if settings.aws_endpoints:
        endpoints |= _aws_destinations(settings.aws_endpoints, http)
    if settings.smtp_host:
        relay = Relay(
            settings.smtp_host,
            settings.smtp_port,
            settings.smtp_sender,
            settings.smtp_user or None,
            settings.smtp_password or None,
            settings.smtp_starttls,
            ca_file,
        )
        endpoints["email"] = endpoints["email-json"] = EmailEndpoint(runtime.clock.now, relay)
    return endpoints


def _ca_file(settings: Settings) -> Path | None:
    """The certificates that endpoints may show, tried here: else the first push would be the first to fail."""
    if not settings.endpoint_ca_file:
        return None
    try:
        ssl.create_default_context(cafile=settings.endpoint_ca_file)
    except ssl.SSLError as error:
        raise SettingsInvalid(
            f"endpoint_ca_file {settings.endpoint_ca_file} holds no certificates in PEM"
        ) from error
    except OSError as error:
        raise SettingsInvalid(
            f"cannot read endpoint_ca_file {settings.endpoint_ca_file}: {error.strerror}"
        ) from error
    return Path(settings.endpoint_ca_file)


def _http_policy(settings: Settings, ca_file: Path | None) -> HttpPolicy:
    return HttpPolicy(
        forbids_private=settings.forbids_private,
        private_networks=read_networks(settings.allow_private_endpoints),
        ca_file=ca_file,
    )


def _named_destinations(
    address: Callable[[str], str | None], ca_file: Path | None, runtime: Runtime
) -> dict[str, Endpoint]:
    """Storage queues and message brokers; none where their libraries are not installed, which few servers need."""
    try:
        from redrive.endpoints.azure.amqp import AmqpEndpoint  # noqa: PLC0415 - of an extra
        from redrive.endpoints.azure.storage_queue import StorageQueueEndpoint  # noqa: PLC0415 - of an extra
    except ImportError as error:
        logger.warning("destinations.missing: %s is not installed; pip install 'redrive[azure]'", error.name)
        return {}
    now = SystemClock().now
    return {
        "amqp": AmqpEndpoint(now, runtime.chance, address, ca_file),
        "storage-queue": StorageQueueEndpoint(now, address, ca_file),
    }


def _aws_destinations(pairs: str, http: HttpEndpoint) -> dict[str, Endpoint]:
    """Functions and delivery streams, on whatever servers the settings name."""
    # botocore takes 70 ms to import, and few servers need these.
    from redrive.endpoints.aws.calls import AwsClient  # noqa: PLC0415 - as above
    from redrive.endpoints.aws.credentials import AwsCredentials  # noqa: PLC0415 - as above
    from redrive.endpoints.aws.firehose import StreamEndpoint  # noqa: PLC0415 - as above
    from redrive.endpoints.aws.function import FunctionEndpoint  # noqa: PLC0415 - as above

    now, named = SystemClock().now, read_aws_endpoints(pairs)
    client = AwsClient(http, partial(aws_endpoint_of, named), AwsCredentials(now))
    return {"lambda": FunctionEndpoint(now, client), "firehose": StreamEndpoint(now, client)}


def _push_services(pairs: str, ca_file: Path | None, runtime: Runtime) -> Endpoint:
    """The connection to mobile devices; SNS's platform endpoints are pushed to through it."""
    return PushEndpoint(SystemClock().now, runtime.chance, read_push_endpoints(pairs), ca_file)


def connect_telephones(
    settings: Settings, engine: Engine, endpoints: dict[str, Endpoint]
) -> SmsEndpoint | None:
    """The line to the message centre, if one is named: text messages go through it, and it hears who opts out."""
    gateway = None
    if settings.sms_gateway:
        gateway = SmsEndpoint(SystemClock().now, read_gateway(settings.sms_gateway), _ca_file(settings))
    telephones = Telephones(
        gateway, engine.resources.documents, engine.clock.now, Decimal(settings.sms_part_price)
    )
    endpoints["sms"] = telephones
    if gateway is not None:
        gateway.reader = telephones.heard
    return gateway


def _blob_folder(settings: Settings) -> str:
    """Beside the SQLite file, so that what is backed up together lies together; else where the server was started."""
    _, _, file = settings.store.partition("sqlite:///")
    return str(Path(file).parent / "redrive-blobs")
