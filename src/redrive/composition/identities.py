"""Identities: AWS STS."""

from redrive.composition.core import Core
from redrive.composition.extension import Extension
from redrive.protocols.aws.sts.facade import Sts


def extension(core: Core) -> Extension:
    """Sessions are nowhere kept."""
    return Extension(services={"sts": Sts(core.sessions, core.engine.resources.documents)})
