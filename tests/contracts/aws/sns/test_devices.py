"""Mobile platforms and telephones: kept, published to, and refused where they should be."""

import pytest

from tests.contracts.aws.sns.client import Sns
from tests.contracts.aws.sqs.client import refused
from tests.services.server import Server


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


def test_a_device_from_beginning_to_end(sns: Sns) -> None:
    made = sns.client.create_platform_application(
        Name="app", Platform="GCM", Attributes={"PlatformCredential": "secret"}
    )
    application = made["PlatformApplicationArn"]
    arn = sns.client.create_platform_endpoint(PlatformApplicationArn=application, Token="t")["EndpointArn"]
    listed = sns.client.list_endpoints_by_platform_application(PlatformApplicationArn=application)
    assert listed["Endpoints"] == [{"EndpointArn": arn, "Attributes": {"Enabled": "true", "Token": "t"}}]
    assert sns.client.publish(TargetArn=arn, Message="m")["MessageId"]
    sns.client.set_endpoint_attributes(EndpointArn=arn, Attributes={"Enabled": "false"})
    with refused("EndpointDisabled", "Endpoint is disabled"):
        sns.client.publish(TargetArn=arn, Message="m")
    sns.client.delete_endpoint(EndpointArn=arn)
    with refused("NotFound", "Endpoint does not exist", 404):
        sns.client.get_endpoint_attributes(EndpointArn=arn)
    sns.client.delete_platform_application(PlatformApplicationArn=application)
    assert sns.client.list_platform_applications()["PlatformApplications"] == []


def test_text_messages_are_published_to_valid_numbers_alone(sns: Sns) -> None:
    assert sns.client.publish(PhoneNumber="+33000000000", Message="This is a SMS")["MessageId"]
    with refused(
        "InvalidParameter", "Invalid parameter: PhoneNumber Reason: +1a234 is not valid to publish to"
    ):
        sns.client.publish(PhoneNumber="+1a234", Message="m")
    assert sns.client.check_if_phone_number_is_opted_out(phoneNumber="+33000000000")["isOptedOut"] is False
    assert sns.client.list_phone_numbers_opted_out()["phoneNumbers"] == []
    assert sns.client.list_origination_numbers()["PhoneNumbers"] == []
    assert sns.client.get_sms_sandbox_account_status()["IsInSandbox"] is False


def test_text_message_attributes(sns: Sns) -> None:
    sns.client.set_sms_attributes(attributes={"DefaultSMSType": "Transactional"})
    shown = sns.client.get_sms_attributes(attributes=["DefaultSMSType"])["attributes"]
    assert shown == {"DefaultSMSType": "Transactional"}
    with refused("InvalidParameter", "DefaultSMSType is invalid"):
        sns.client.set_sms_attributes(attributes={"DefaultSMSType": "Cheap"})


def test_a_sandbox_number_waits_for_its_verification(sns: Sns) -> None:
    sns.client.create_sms_sandbox_phone_number(PhoneNumber="+33000000000")
    listed = sns.client.list_sms_sandbox_phone_numbers()["PhoneNumbers"]
    assert listed == [{"PhoneNumber": "+33000000000", "Status": "Pending"}]
    with refused("VerificationException"):
        sns.client.verify_sms_sandbox_phone_number(PhoneNumber="+33000000000", OneTimePassword="00000000")
    sns.client.delete_sms_sandbox_phone_number(PhoneNumber="+33000000000")
    with refused("ResourceNotFound", status=404):
        sns.client.delete_sms_sandbox_phone_number(PhoneNumber="+33000000000")
