"""Amazon SNS: its 42 operations."""

from collections.abc import Mapping
from typing import Any

from redrive.engine.directory import Kind
from redrive.engine.engine import Engine
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Verb
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
        topics, tags, confirmations = TopicOperations(engine), TagOperations(engine), Confirmations(engine)
        subscriptions = SubscriptionOperations(engine, confirmations, filters_max)
        opt_outs = OptOuts(engine.directory)
        direct = Direct(engine, opt_outs)
        publishing, sandbox = (
            Publishing(engine, direct, Screening(engine, audit_log)),
            SandboxOperations(engine, direct),
        )
        sms = SmsAttributeOperations(engine.directory)
        applications, devices = PlatformApplicationOperations(engine), PlatformEndpointOperations(engine)
        self.operations: Mapping[str, Verb] = {
            "AddPermission": topics.add_permission,
            "CheckIfPhoneNumberIsOptedOut": opt_outs.check_if_phone_number_is_opted_out,
            "ConfirmSubscription": confirmations.confirm_subscription,
            "CreatePlatformApplication": applications.create_platform_application,
            "CreatePlatformEndpoint": devices.create_platform_endpoint,
            "CreateSMSSandboxPhoneNumber": sandbox.create_sms_sandbox_phone_number,
            "CreateTopic": topics.create_topic,
            "DeleteEndpoint": devices.delete_endpoint,
            "DeletePlatformApplication": applications.delete_platform_application,
            "DeleteSMSSandboxPhoneNumber": sandbox.delete_sms_sandbox_phone_number,
            "DeleteTopic": topics.delete_topic,
            "GetDataProtectionPolicy": topics.get_data_protection_policy,
            "GetEndpointAttributes": devices.get_endpoint_attributes,
            "GetPlatformApplicationAttributes": applications.get_platform_application_attributes,
            "GetSMSAttributes": sms.get_sms_attributes,
            "GetSMSSandboxAccountStatus": sandbox.get_sms_sandbox_account_status,
            "GetSubscriptionAttributes": subscriptions.get_subscription_attributes,
            "GetTopicAttributes": topics.get_topic_attributes,
            "ListEndpointsByPlatformApplication": devices.list_endpoints_by_platform_application,
            "ListOriginationNumbers": sandbox.list_origination_numbers,
            "ListPhoneNumbersOptedOut": opt_outs.list_phone_numbers_opted_out,
            "ListPlatformApplications": applications.list_platform_applications,
            "ListSMSSandboxPhoneNumbers": sandbox.list_sms_sandbox_phone_numbers,
            "ListSubscriptions": subscriptions.list_subscriptions,
            "ListSubscriptionsByTopic": subscriptions.list_subscriptions_by_topic,
            "ListTagsForResource": tags.list_tags_for_resource,
            "ListTopics": topics.list_topics,
            "OptInPhoneNumber": opt_outs.opt_in_phone_number,
            "Publish": publishing.publish,
            "PublishBatch": publishing.publish_batch,
            "PutDataProtectionPolicy": topics.put_data_protection_policy,
            "RemovePermission": topics.remove_permission,
            "SetEndpointAttributes": devices.set_endpoint_attributes,
            "SetPlatformApplicationAttributes": applications.set_platform_application_attributes,
            "SetSMSAttributes": sms.set_sms_attributes,
            "SetSubscriptionAttributes": subscriptions.set_subscription_attributes,
            "SetTopicAttributes": topics.set_topic_attributes,
            "Subscribe": subscriptions.subscribe,
            "TagResource": tags.tag_resource,
            "Unsubscribe": subscriptions.unsubscribe,
            "UntagResource": tags.untag_resource,
            "VerifySMSSandboxPhoneNumber": sandbox.verify_sms_sandbox_phone_number,
        }

    kinds: tuple[Kind[Any], ...] = (
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
    """What it keeps besides topics and subscriptions; a reset removes it."""

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
