"""Mobile push as a part of SNS."""

from redrive.engine.engine import Engine
from redrive.protocols.aws.sns.devices.applications import PlatformApplicationOperations
from redrive.protocols.aws.sns.devices.endpoints import PlatformEndpointOperations
from redrive.protocols.aws.sns.devices.platform import APPLICATION, DEVICE, OF_TOKEN
from redrive.protocols.aws.sns.devices.push import render
from redrive.protocols.aws.sns.part import SnsPart


def mobile_push(engine: Engine) -> SnsPart:
    """Platform applications and their endpoints."""
    return SnsPart(
        operations=(PlatformApplicationOperations(engine), PlatformEndpointOperations(engine)),
        renderers={"application": render},
        kinds=(APPLICATION, DEVICE, OF_TOKEN),
    )
