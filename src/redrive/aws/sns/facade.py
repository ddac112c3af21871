"""Amazon SNS: its 42 operations, those of its optional parts among them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from redrive.access.secret import InstallationSecret
from redrive.aws.encryption.encryption import Encryption
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import WHOLE_SERVICE, ResourceScope, values_of
from redrive.aws.sns import names
from redrive.aws.sns.confirmations import QUESTION, Confirmations
from redrive.aws.sns.direct import Direct
from redrive.aws.sns.errors import translated
from redrive.aws.sns.limits import FILTERS_MAX
from redrive.aws.sns.part import SnsPart
from redrive.aws.sns.publishing import PublishOperations
from redrive.aws.sns.roles import with_roles_checked
from redrive.aws.sns.sms.opt_outs import OptOuts
from redrive.aws.sns.subscriptions import SubscriptionOperations
from redrive.aws.sns.tags import TAGS, TopicTags
from redrive.aws.sns.topics import TopicOperations
from redrive.aws.sns.unsubscribing import UnsubscribeTokens
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError

#: Parameters that lead to a topic, about which `access` asks, its policy and the caller's own.
_OF_TOPIC: Final = frozenset({"TopicArn", "ResourceArn", "TargetArn"})


class Sns:
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
        direct = Direct(engine, OptOuts(engine.resources.documents))
        operations = operations_of(
            "sns",
            TopicOperations(engine),
            TAGS.operations(TopicTags(engine)),
            SubscriptionOperations(engine, confirmations, tokens, filters_max),
            confirmations,
            PublishOperations(engine, direct, screening, encryption),
            *(operations for part in parts for operations in part.operations),
        )
        self.operations: Mapping[str, Verb] = with_roles_checked(operations, identities)

    kinds: tuple[DocumentKind[Any], ...] = (QUESTION,)
    """The documents of SNS itself besides topics and subscriptions; a reset removes them."""

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
        """See `Facade.scopes`."""
        own = f"arn:aws:sns:{call.region}:{call.account}"
        if operation == "CreateTopic":
            return [ResourceScope(f"{own}:{params['Name']}")]
        if operation == "CreatePlatformApplication":
            return [ResourceScope(f"{own}:app/{params['Platform']}/{params['Name']}")]
        if operation == "Publish" and "PhoneNumber" in params:
            return [WHOLE_SERVICE]
        arns = values_of(params, "TargetArn", "PlatformApplicationArn", "EndpointArn")
        scopes = [ResourceScope(_plain(arn)) for arn in arns if "/" in arn]
        for arn in values_of(params, "SubscriptionArn"):
            subscription = names.subscription_in(arn)
            related = (names.arn_of(subscription.topic),)
            scopes.append(ResourceScope(names.subscription_arn_in(*subscription), related))
        return scopes or ([] if _OF_TOPIC & params.keys() else [ResourceScope(f"{own}:*")])

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)


def _plain(arn: str) -> str:
    """An ARN in the one partition that there is."""
    parsed = parse_arn(arn)
    return f"arn:aws:sns:{parsed.region}:{parsed.account}:{parsed.resource}"
