"""Amazon SNS: its 42 operations, those of its optional parts among them."""

from collections.abc import Sequence

from redrive.access.secret import InstallationSecret
from redrive.aws.encryption.encryption import Encryption
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.service import OfferedService
from redrive.aws.sns.confirmations import Confirmations
from redrive.aws.sns.documents.limits import FILTERS_MAX
from redrive.aws.sns.notifications.unsubscribing import UnsubscribeTokens
from redrive.aws.sns.parts import SnsPart
from redrive.aws.sns.publishing import PublishOperations
from redrive.aws.sns.roles import with_roles_checked
from redrive.aws.sns.service import SERVICE
from redrive.aws.sns.sms.direct import DirectTexts
from redrive.aws.sns.sms.opt_outs import OptOuts
from redrive.aws.sns.subscriptions import SubscriptionOperations
from redrive.aws.sns.tags import TAGS, TopicTags
from redrive.aws.sns.topics import TopicOperations
from redrive.engine.engine import Engine


class Sns(OfferedService):
    """SNS on an engine."""

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[SnsPart],
        secret: InstallationSecret,
        identities: Identities,
        filters_max: int = FILTERS_MAX,
        encryption: Encryption | None = None,
    ) -> None:
        """Speak for this engine.

        Args:
            engine: It knows this package's `SnsDeliveryProfile` as `sns`.
            parts: What SNS consists of besides topics and subscriptions; one of them screens.
            secret: Proves links that unsubscribe.
            identities: Users and roles, some of which SNS acts as.
            filters_max: Filter policies a topic.
            encryption: Knows the keys of topics; None: no topic has one.
        """
        tokens, confirmations = UnsubscribeTokens(secret), Confirmations(engine)
        (screening,) = (part.screening for part in parts if part.screening is not None)
        texts = DirectTexts(engine, OptOuts(engine.resources.documents))
        operations = operations_of(
            "sns",
            TopicOperations(engine),
            TAGS.operations(TopicTags(engine)),
            SubscriptionOperations(engine, confirmations, tokens, filters_max),
            confirmations,
            PublishOperations(engine, texts, screening, encryption),
            *(operations for part in parts for operations in part.operations),
        )
        super().__init__(SERVICE, engine, with_roles_checked(operations, identities))
