"""Amazon SNS: its 42 operations."""

from collections.abc import Mapping
from typing import Any

from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Verb
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.sns.confirmations import QUESTION, Confirmations
from redrive.protocols.aws.sns.devices.applications import PlatformApplicationOperations
from redrive.protocols.aws.sns.devices.endpoints import PlatformEndpointOperations
from redrive.protocols.aws.sns.devices.platform import APPLICATION, DEVICE, OF_TOKEN
from redrive.protocols.aws.sns.direct import Direct
from redrive.protocols.aws.sns.errors import translated
from redrive.protocols.aws.sns.limits import FILTERS_MAX
from redrive.protocols.aws.sns.protection.audit import AuditLog
from redrive.protocols.aws.sns.protection.screening import Screening
from redrive.protocols.aws.sns.publishing import Publishing
from redrive.protocols.aws.sns.sms.attributes import SMS_ATTRIBUTES, SmsAttributeOperations
from redrive.protocols.aws.sns.sms.opt_outs import OPT_OUT, OptOuts
from redrive.protocols.aws.sns.sms.sandbox import SANDBOX_NUMBER, SandboxOperations
from redrive.protocols.aws.sns.sms.telephones import CORRESPONDENT, SPENT
from redrive.protocols.aws.sns.subscriptions import SubscriptionOperations
from redrive.protocols.aws.sns.tags import TagOperations
from redrive.protocols.aws.sns.topics import TopicOperations
from redrive.protocols.aws.wire.errors import AwsError


class Sns:
    """SNS on an engine."""

    def __init__(self, engine: Engine, audit_log: AuditLog, filters_max: int = FILTERS_MAX) -> None:
        """Speak for this engine, which knows this package's `SnsDialect` as `sns`; so many filters for a topic.

        What data protection finds goes to `audit_log`.
        """
        confirmations, opt_outs = Confirmations(engine), OptOuts(engine.resources.documents)
        direct = Direct(engine, opt_outs)
        self.operations: Mapping[str, Verb] = operations_of(
            "sns",
            TopicOperations(engine),
            TagOperations(engine),
            SubscriptionOperations(engine, confirmations, filters_max),
            confirmations,
            Publishing(engine, direct, Screening(engine, audit_log)),
            PlatformApplicationOperations(engine),
            PlatformEndpointOperations(engine),
            SmsAttributeOperations(engine.resources.documents),
            SandboxOperations(engine, direct),
            opt_outs,
        )

    kinds: tuple[DocumentKind[Any], ...] = (
        APPLICATION,
        CORRESPONDENT,
        DEVICE,
        OF_TOKEN,
        OPT_OUT,
        QUESTION,
        SANDBOX_NUMBER,
        SMS_ATTRIBUTES,
        SPENT,
    )
    """The documents of SNS besides topics and subscriptions; a reset removes them."""

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
