"""Identities: AWS IAM and STS."""

from redrive.aws.iam.facade import Iam
from redrive.aws.sts.facade import Sts
from redrive.composition.core import Core
from redrive.composition.extension import Extension, Interface


def extension(core: Core) -> Extension:
    """Users, groups and roles are documents; sessions are nowhere kept."""
    return Extension(
        interface=Interface(
            services={
                "iam": Iam(core.engine, core.keyring),
                "sts": Sts(core.sessions, core.engine.resources.documents),
            },
            kinds=Iam.kinds,
        ),
    )
