"""The summary of settings that a server logs when it starts: one line that tells an operator what runs here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

import redrive
from redrive.settings.table import Settings, row_of
from redrive.settings.values import read_aws_endpoints

_ROWS: Final = {field.name: row_of(field) for field in fields(Settings)}
_ARN_SERVICE: Final = 2  # arn:partition:service:…


def summary(settings: Settings, addresses: Sequence[str], account: str) -> Mapping[str, Any]:
    """The fields of the line `server.started`; passwords are masked.

    Addresses are `host:port`; `account` is that of callers that show no credential, where such are answered.
    """
    parts = dict(_parts(settings))
    return {
        "version": redrive.__version__,
        "store": _ROWS["store"].masked(settings.store),
        "listening": list(addresses),
        "auth": settings.auth,
        "account": account if settings.auth == "off" else "by key",
        "region": settings.region,
        "clock": settings.clock,
        "set_up": [name for name, is_set_up in parts.items() if is_set_up],
        "not_set_up": [name for name, is_set_up in parts.items() if not is_set_up],
    }


def _parts(settings: Settings) -> Iterator[tuple[str, bool]]:
    """Each part of a server that is there only where it was set up, and whether it was."""
    services = {_service(name) for name in read_aws_endpoints(settings.aws_endpoints)}
    yield "tls", settings.tls != "off" or bool(settings.tls_cert)
    yield "store_key", bool(settings.store_key_file)
    yield "mail", bool(settings.smtp_host)
    yield "text_messages", bool(settings.sms_gateway)
    yield "push_gateways", bool(settings.push_endpoints)
    yield "functions", settings.runs_functions or "lambda" in services
    yield "streams", "firehose" in services
    yield "azure_endpoints", bool(settings.azure_endpoints)
    yield "blob_store", bool(settings.blob_store)
    yield "resources", bool(settings.resources)
    yield "reset", settings.allow_reset
    yield "request_log", settings.request_log


def _service(name: str) -> str:
    return name.split(":")[_ARN_SERVICE] if name.startswith("arn:") else name
