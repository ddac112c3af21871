"""The calls of `cdk bootstrap` and `cdk deploy`, in their order, as they were recorded from the CDK's version 2.1148."""

import json
from typing import Any

from tests.aws.cloudformation.stage import ACCOUNT, REGION, Stage, stage

BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
VERSION = "/cdk-bootstrap/hnb659fds/version"
_BUCKET_ARN = {"Fn::GetAtt": ["StagingBucket", "Arn"]}


def _of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def toolkit() -> dict[str, Any]:
    """The resources of the CDK's own stack, each with the properties that a server may stumble over."""
    denied = {
        "Sid": "AllowSSLRequestsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [_BUCKET_ARN, {"Fn::Join": ["", [_BUCKET_ARN, "/*"]]}],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"AWS": {"Ref": "AWS::AccountId"}},
    }
    old = {
        "Id": "CleanupOldVersions",
        "Status": "Enabled",
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
    }
    encrypted = {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    resources = {
        "StagingBucket": _of(
            "S3::Bucket",
            BucketName={"Fn::Sub": "cdk-${Qualifier}-assets-${AWS::AccountId}-${AWS::Region}"},
            AccessControl="Private",
            BucketEncryption={"ServerSideEncryptionConfiguration": [encrypted]},
            PublicAccessBlockConfiguration={"BlockPublicAcls": True, "BlockPublicPolicy": True},
            VersioningConfiguration={"Status": "Enabled"},
            LifecycleConfiguration={"Rules": [old]},
        )
        | {"UpdateReplacePolicy": "Retain", "DeletionPolicy": "Retain"},
        "StagingBucketPolicy": _of(
            "S3::BucketPolicy",
            Bucket={"Ref": "StagingBucket"},
            PolicyDocument={"Version": "2012-10-17", "Statement": [denied]},
        ),
        "ContainerAssetsRepository": _of(
            "ECR::Repository",
            ImageTagMutability="IMMUTABLE",
            RepositoryName={"Fn::Sub": "cdk-${Qualifier}-container-assets-${AWS::AccountId}-${AWS::Region}"},
        ),
        "DeploymentActionRole": _of(
            "IAM::Role",
            AssumeRolePolicyDocument={"Version": "2012-10-17", "Statement": [trust]},
            RoleName={"Fn::Sub": "cdk-${Qualifier}-deploy-role-${AWS::AccountId}-${AWS::Region}"},
        ),
        "CdkBootstrapVersion": _of(
            "SSM::Parameter",
            Type="String",
            Name={"Fn::Sub": "/cdk-bootstrap/${Qualifier}/version"},
            Value="30",
        ),
    }
    parameters = {"Qualifier": {"Type": "String", "Default": "hnb659fds", "MaxLength": 10}}
    return {"Parameters": parameters, "Resources": resources}


def application() -> dict[str, Any]:
    """A stack as the CDK writes it, which reads the version from the parameter store."""
    version = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": VERSION}
    known = {"Fn::Contains": [["1", "2", "3", "4", "5"], {"Ref": "BootstrapVersion"}]}
    rule = {"Assertions": [{"Assert": {"Fn::Not": [known]}, "AssertDescription": "run cdk bootstrap again"}]}
    resources = {"Work": _of("SQS::Queue"), "CDKMetadata": _of("CDK::Metadata", Analytics="v2:deflate64:H4s")}
    return {
        "Parameters": {"BootstrapVersion": version},
        "Rules": {"CheckBootstrapVersion": rule},
        "Resources": resources,
    }


async def _deployed(at: Stage, name: str, template: dict[str, Any]) -> str:
    """Deploy by a change set, as the CDK does; the status of the stack."""
    assert await at.refused("DescribeStacks", StackName=name) == f"Stack with id {name} does not exist"
    set_name = {"StackName": name, "ChangeSetName": "cdk-deploy-change-set"}
    capabilities = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
    made = await at.stacks(
        "CreateChangeSet",
        **set_name,
        ChangeSetType="CREATE",
        TemplateBody=template,
        Capabilities=capabilities,
    )
    assert (await at.stacks("DescribeChangeSet", **set_name))["Status"] == "CREATE_COMPLETE"
    await at.stacks("ExecuteChangeSet", **set_name, ClientRequestToken="exec")
    status: str = (await at.ended(made["StackId"]))["StackStatus"]
    await at.stacks("UpdateTerminationProtection", StackName=name, EnableTerminationProtection=False)
    return status


async def test_the_cdk_prepares_an_account_and_deploys_to_it() -> None:
    async with stage() as at:
        assert await _deployed(at, "CDKToolkit", toolkit()) == "CREATE_COMPLETE"
        version = await at.ask("ssm", "GetParameter", Name=VERSION)
        assert version["Parameter"]["Value"] == "30"
        role = f"arn:aws:iam::{ACCOUNT}:role/cdk-hnb659fds-deploy-role-{ACCOUNT}-{REGION}"
        await at.ask("sts", "AssumeRole", RoleArn=role, RoleSessionName="aws-cdk-root")
        await at.ask("s3", "GetBucketLocation", Bucket=BUCKET)
        listed = await at.ask("s3", "ListObjectsV2", Bucket=BUCKET, Prefix="asset.zip", MaxKeys=1)
        assert not listed.get("Contents")
        asset = {"Bucket": BUCKET, "Key": "asset.zip", "ServerSideEncryption": "AES256"}
        await at.ask("s3", "PutObject", **asset, Body=json.dumps({}).encode())
        assert await _deployed(at, "shop", application()) == "CREATE_COMPLETE"
        shown = await at.stacks("DescribeStacks", StackName="shop")
        assert shown["Stacks"][0]["Parameters"][0]["ResolvedValue"] == "30"
