"""Data protection: what is found in messages is audited, denied, masked or redacted."""

from redrive.aws.sns.parts import data_protection
from redrive.aws.sns.protection.audit import AuditLog
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension


def extension(core: Core) -> Extension:
    """Findings go to the log groups that policies name."""
    telemetry = core.telemetry
    audit_log = AuditLog(telemetry.logs, telemetry.count, core.runtime.rng, core.stream)
    return Extension(
        delivery=DeliveryParts(
            sns=data_protection(core.engine, audit_log),
        ),
    )
