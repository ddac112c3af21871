"""Mobile push as a part of SNS."""

from redrive.aws.sns.devices.applications import PlatformApplicationOperations
from redrive.aws.sns.devices.endpoints import PlatformEndpointOperations
from redrive.aws.sns.devices.platform import APPLICATION, DEVICE, OF_TOKEN
from redrive.aws.sns.devices.push import render
from redrive.aws.sns.part import SnsPart
from redrive.engine.engine import Engine


def mobile_push(engine: Engine) -> SnsPart:
    """Platform applications and their endpoints."""
    return SnsPart(
        operations=(PlatformApplicationOperations(engine), PlatformEndpointOperations(engine)),
        renderers={"application": render},
        kinds=(APPLICATION, DEVICE, OF_TOKEN),
    )
