"""Data protection as a part of SNS."""

from redrive.aws.sns.part import SnsPart
from redrive.aws.sns.protection.audit import AuditLog
from redrive.aws.sns.protection.policy_operations import DataProtectionOperations
from redrive.aws.sns.protection.screening import Screening
from redrive.engine.engine import Engine


def data_protection(engine: Engine, audit_log: AuditLog) -> SnsPart:
    """Policies, carried out on what is published; findings go to the log."""
    return SnsPart(operations=(DataProtectionOperations(engine),), screening=Screening(engine, audit_log))
