"""Amazon SNS: its 42 operations, those of its optional parts among them."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from redrive.access.secret import InstallationSecret
from redrive.aws.encryption.encryption import Encryption
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.attributes import ROLE_ARN
from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.service import OfferedService, operations_of
from redrive.aws.sns.confirmations import Confirmations
from redrive.aws.sns.documents.errors import invalid
from redrive.aws.sns.documents.limits import FILTERS_MAX
from redrive.aws.sns.documents.subscription_attributes import ROLE
from redrive.aws.sns.notifications.notification import UnsubscribeTokens
from redrive.aws.sns.parts import SnsPart
from redrive.aws.sns.publishing import PublishOperations
from redrive.aws.sns.service import SERVICE
from redrive.aws.sns.sms.telephones import DirectTexts, OptOuts
from redrive.aws.sns.subscriptions import SubscriptionOperations
from redrive.aws.sns.topics import TAGS, TopicOperations, TopicTags
from redrive.aws.wire.shapes import Structure
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
        """Build the facade over an engine.

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


# ---- roles in attributes ---------------------------------------------------------------------------------------------
#
# A subscription to a delivery stream names a role, and so does a topic or an account for its delivery logs. In the
# published model attributes are texts by name, so the roles of every operation with attributes are checked here.

SESSION: Final = "redrive-sns"
_ENDINGS: Final = ("RoleArn", "IAMRole")


def with_roles_checked(operations: Mapping[str, Verb], identities: Identities) -> dict[str, Verb]:
    """Operations of SNS that refuse roles which their caller may not have SNS act as."""
    logging_roles = ServiceRoles(
        identities,
        "sns",
        SESSION,
        lambda role: invalid(f"{role} is not a valid role to allow SNS to write to Cloudwatch Logs"),
    )
    stream_roles = ServiceRoles(
        identities,
        "sns",
        SESSION,
        lambda role: invalid(f"{ROLE} Reason: SNS is unable to assume role {role}"),
    )

    def with_check(verb: Verb) -> Verb:
        @functools.wraps(verb)
        async def check_and_carry_out(call: Call, params: Structure) -> Structure:
            for name, role in _roles(params):
                await (stream_roles if name == ROLE else logging_roles).check(call, role)
            return await verb(call, params)

        return check_and_carry_out

    return {name: with_check(verb) if _takes_attributes(name) else verb for name, verb in operations.items()}


def _takes_attributes(operation: str) -> bool:
    return operation.startswith(("Create", "Set")) or operation == "Subscribe"


def _roles(params: Structure) -> Iterator[tuple[str, str]]:
    """The attributes that name roles; the operation itself refuses what is not a role's ARN."""
    attributes = dict(params.get("Attributes") or params.get("attributes") or {})
    if "AttributeName" in params:
        attributes[params["AttributeName"]] = params.get("AttributeValue") or ""
    for name, value in attributes.items():
        if name.endswith(_ENDINGS) and ROLE_ARN.parse(value) is not None:
            yield name, value
