"""Settings: one frozen value, read once from flags, the environment, a file and the defaults, in that order."""

from redrive.settings.hardening import risks
from redrive.settings.sources import ENVIRONMENT_PREFIX, Origin, origins_of, read_settings, variable_of
from redrive.settings.summary import summary
from redrive.settings.table import SettingRow, Settings, row_of
from redrive.settings.values import (
    AWS_ITSELF,
    AWS_SERVICES,
    PUSH_SERVICES,
    CertificateUnusable,
    SettingsInvalid,
    address_of,
    aws_endpoint_of,
    is_loopback,
    read_addresses,
    read_aws_endpoints,
    read_hosts,
    read_networks,
    read_push_endpoints,
)

__all__ = [
    "AWS_ITSELF",
    "AWS_SERVICES",
    "ENVIRONMENT_PREFIX",
    "PUSH_SERVICES",
    "CertificateUnusable",
    "Origin",
    "SettingRow",
    "Settings",
    "SettingsInvalid",
    "address_of",
    "aws_endpoint_of",
    "is_loopback",
    "origins_of",
    "read_addresses",
    "read_aws_endpoints",
    "read_hosts",
    "read_networks",
    "read_push_endpoints",
    "read_settings",
    "risks",
    "row_of",
    "summary",
    "variable_of",
]
