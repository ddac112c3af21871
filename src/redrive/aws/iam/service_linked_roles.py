"""Service-linked roles, as which Amazon's services act; a request to create one only names the service."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import orjson

from redrive.access.identities import Role, key_of
from redrive.aws.iam.attachments import count_uses_in
from redrive.aws.iam.entities import ROLES, role_structure
from redrive.aws.iam.errors import absent, bad_input, unmodifiable
from redrive.aws.iam.roles import NOT_AT_CREATION
from redrive.aws.kit.call import Call, Verb
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.engine.resources import Documents, Draft, Resources
from redrive.model.names import id_text

_PATH: Final = "/aws-service-role/"
_HOST: Final = ".amazonaws.com"
_POLICIES: Final = "arn:aws:iam::aws:policy/aws-service-role/"
_TASK: Final = re.compile(r"task/aws-service-role/([^/]+)/([^/]+)/[0-9a-f-]{36}")
_WITH_SUFFIX: Final = frozenset({"autoscaling", "connect", "lexv2"})
#: The operations by which nobody but its service may change such a role.
_PROTECTED: Final = (
    *("AddRoleToInstanceProfile", "AttachRolePolicy", "DeleteRole", "DeleteRolePermissionsBoundary"),
    *("DeleteRolePolicy", "DetachRolePolicy", "PutRolePermissionsBoundary", "PutRolePolicy"),
    *("UpdateAssumeRolePolicy", "UpdateRole"),
)


class _LinkedRole(NamedTuple):
    """The role of a service."""

    role: str  # Its name
    policy: str  # The name of its attached policy


def linked_role(name: str, suffix: str = "") -> str:
    """The path and the name of a service's role, without the first slash; empty: the service has none."""
    row = _ROLES.get(name.removesuffix(_HOST))
    return f"{_PATH[1:]}{name}/{row.role}{suffix and f'_{suffix}'}" if row else ""


class ServiceLinkedRoles:
    """Creates and deletes the roles of services."""

    def __init__(self, resources: Resources, runtime: Runtime) -> None:
        self._resources = resources
        self._runtime = runtime

    async def create_service_linked_role(self, call: Call, params: Structure) -> Structure:
        service, suffix = params["AWSServiceName"], params.get("CustomSuffix") or ""
        path, _, name = linked_role(service, suffix).rpartition("/")
        if not name:
            raise bad_input(f"Service-linked roles of {service} are not offered.")  # chosen
        word = service.removesuffix(_HOST)
        if suffix and word not in _WITH_SUFFIX:
            raise bad_input(f"Custom suffix is not allowed for {service}")
        role = Role(
            call.account,
            f"/{path}/",
            name,
            ROLES.new_id(self._runtime.rng),
            call.now,
            attached=(f"{_POLICIES}{_ROLES[word].policy}",),
            trust=_trust(service),
            description=params.get("Description") or "",
        )

        async def decide(draft: Draft) -> None:
            if await draft.get(ROLES.kind, role.key) is not None:
                raise bad_input(
                    f"Service role name {name} has been taken in this account, please try a different suffix."
                )
            draft.put(ROLES.kind, role.key, role)

        await self._resources.write(decide)
        answer = role_structure(role)
        return {"Role": {name: value for name, value in answer.items() if name not in NOT_AT_CREATION}}

    async def delete_service_linked_role(self, call: Call, params: Structure) -> Structure:
        async def decide(draft: Draft) -> Role:
            role = await ROLES.get(draft, call.account, params["RoleName"])
            if not is_linked(role):
                raise bad_input(f"{role.name} is not a service-linked role.")  # chosen
            if role.boundary:
                await count_uses_in(draft, role.boundary, boundaries=-1)
            draft.remove(ROLES.kind, role.key)
            return role

        role = await self._resources.write(decide)
        task = id_text(self._runtime.message_id())
        return {"DeletionTaskId": f"task{role.path}{role.name}/{task}"}

    async def get_service_linked_role_deletion_status(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        """A role is deleted before its deletion is answered, so every task has succeeded."""
        match = _TASK.fullmatch(params["DeletionTaskId"])
        name = linked_role(match[1]).rpartition("/")[2] if match is not None else ""
        if match is None or not name or not match[2].startswith(name):
            raise absent(f"Deletion task {params['DeletionTaskId']} cannot be found.")  # chosen
        return {"Status": "SUCCEEDED"}


def is_linked(role: Role) -> bool:
    """True if a role is service-linked."""
    service = role.path.removeprefix(_PATH).removesuffix("/")
    name = linked_role(service).rpartition("/")[2]
    return role.path.startswith(_PATH) and bool(name) and role.name.startswith(name)


def protect_linked_roles(operations: Mapping[str, Verb], documents: Documents) -> dict[str, Verb]:
    """The operations, which refuse to change service-linked roles."""

    def protect(verb: Verb) -> Verb:
        async def check(call: Call, params: Structure) -> Structure:
            role = await documents.get(ROLES.kind, key_of(call.account, params["RoleName"]))
            if role is not None and is_linked(role):
                text = f"Cannot perform the operation on the protected role '{role.name}'"
                raise unmodifiable(f"{text} - this role is only modifiable by AWS")
            return await verb(call, params)

        return check

    return {name: protect(verb) if name in _PROTECTED else verb for name, verb in operations.items()}


def _trust(service: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return orjson.dumps({"Version": "2012-10-17", "Statement": [statement]}).decode()


# The service, its role behind `AWSServiceRoleFor`, and the policy that is attached to it (recorded).
_TABLE: Final = """\
accountdiscovery.ssm AmazonSSM_AccountDiscovery AWSSystemsManagerAccountDiscoveryServicePolicy
acm CertificateManager CertificateManagerServiceRolePolicy
appmesh AppMesh AWSAppMeshServiceRolePolicy
autoscaling-plans AutoScalingPlans_EC2AutoScaling AWSAutoScalingPlansEC2AutoScalingPolicy
autoscaling AutoScaling AutoScalingServiceRolePolicy
backup Backup AWSBackupServiceLinkedRolePolicyForBackup
batch Batch BatchServiceRolePolicy
cassandra.application-autoscaling ApplicationAutoScaling_CassandraTable AWSApplicationAutoscalingCassandraTablePolicy
cks.kms KeyManagementServiceCustomKeyStores AWSKeyManagementServiceCustomKeyStoresServiceRolePolicy
cloudtrail CloudTrail CloudTrailServiceRolePolicy
codestar-notifications CodeStarNotifications AWSCodeStarNotificationsServiceRolePolicy
config Config AWSConfigServiceRolePolicy
connect AmazonConnect AmazonConnectServiceLinkedRolePolicy
dms-fleet-advisor DMSFleetAdvisor AWSDMSFleetAdvisorServiceRolePolicy
dms DMSServerless AWSDMSServerlessServiceRolePolicy
docdb-elastic DocDB-Elastic AmazonDocDB-ElasticServiceRolePolicy
ec2-instance-connect Ec2InstanceConnect Ec2InstanceConnectEndpoint
ec2.application-autoscaling ApplicationAutoScaling_EC2SpotFleetRequest AWSApplicationAutoscalingEC2SpotFleetRequestPolicy
ecr ECRTemplate ECRTemplateServiceRolePolicy
ecs ECS AmazonECSServiceRolePolicy
eks-connector AmazonEKSConnector AmazonEKSConnectorServiceRolePolicy
eks-fargate AmazonEKSForFargate AmazonEKSForFargateServiceRolePolicy
eks-nodegroup AmazonEKSNodegroup AWSServiceRoleForAmazonEKSNodegroup
eks AmazonEKS AmazonEKSServiceRolePolicy
elasticache ElastiCache ElastiCacheServiceRolePolicy
elasticbeanstalk ElasticBeanstalk AWSElasticBeanstalkServiceRolePolicy
elasticfilesystem AmazonElasticFileSystem AmazonElasticFileSystemServiceRolePolicy
elasticloadbalancing ElasticLoadBalancing AWSElasticLoadBalancingServiceRolePolicy
email.cognito-idp AmazonCognitoIdpEmailService AmazonCognitoIdpEmailServiceRolePolicy
emr-containers AmazonEMRContainers AmazonEMRContainersServiceRolePolicy
emrwal EMRWAL EMRDescribeClusterPolicyForEMRWAL
fis FIS AmazonFISServiceRolePolicy
grafana AmazonGrafana AmazonGrafanaServiceLinkedRolePolicy
imagebuilder ImageBuilder AWSServiceRoleForImageBuilder
iotmanagedintegrations IoTManagedIntegrations AWSIoTManagedIntegrationsRolePolicy
kafka Kafka KafkaServiceRolePolicy
kafkaconnect KafkaConnect KafkaConnectServiceRolePolicy
lakeformation LakeFormationDataAccess LakeFormationDataAccessServiceRolePolicy
lex LexBots AmazonLexBotPolicy
lexv2 LexV2Bots AmazonLexV2BotPolicy
lightsail Lightsail LightsailExportAccess
m2 AWSM2 AWSM2ServicePolicy
memorydb MemoryDB MemoryDBServiceRolePolicy
mq AmazonMQ AmazonMQServiceRolePolicy
mrk.kms KeyManagementServiceMultiRegionKeys AWSKeyManagementServiceMultiRegionKeysServiceRolePolicy
notifications AwsUserNotifications AWSUserNotificationsServiceLinkedRolePolicy
observability.aoss AmazonOpenSearchServerless AmazonOpenSearchServerlessServiceRolePolicy
opensearchservice AmazonOpenSearchService AmazonOpenSearchServiceRolePolicy
ops.apigateway APIGateway APIGatewayServiceRolePolicy
ops.emr-serverless AmazonEMRServerless AmazonEMRServerlessServiceRolePolicy
opsdatasync.ssm SystemsManagerOpsDataSync AWSSystemsManagerOpsDataSyncServiceRolePolicy
opsinsights.ssm AmazonSSM_OpsInsights AWSSSMOpsInsightsServiceRolePolicy
pullthroughcache.ecr ECRPullThroughCache AWSECRPullThroughCache_ServiceRolePolicy
ram ResourceAccessManager AWSResourceAccessManagerServiceRolePolicy
rds RDS AmazonRDSServiceRolePolicy
redshift Redshift AmazonRedshiftServiceLinkedRolePolicy
replication.cassandra KeyspacesReplication KeyspacesReplicationServiceRolePolicy
replication.ecr ECRReplication ECRReplicationServiceRolePolicy
repository.sync.codeconnections GitSync AWSGitSyncServiceRolePolicy
resource-explorer-2 ResourceExplorer AWSResourceExplorerServiceRolePolicy
rolesanywhere RolesAnywhere AWSRolesAnywhereServicePolicy
s3-outposts S3OnOutposts AWSS3OnOutpostsServiceRolePolicy
ses AmazonSES AmazonSESServiceRolePolicy
shield AWSShield AWSShieldServiceRolePolicy
ssm-incidents IncidentManager AWSIncidentManagerServiceRolePolicy
ssm-quicksetup SSMQuickSetup SSMQuickSetupRolePolicy
ssm AmazonSSM AmazonSSMServiceRolePolicy
sso SSO AWSSSOServiceRolePolicy
vpcorigin.cloudfront CloudFrontVPCOrigin AWSCloudFrontVPCOriginServiceRolePolicy
waf WAFLogging WAFLoggingServiceRolePolicy
wafv2 WAFV2Logging WAFV2LoggingServiceRolePolicy
"""
_ROLES: Final[Mapping[str, _LinkedRole]] = {
    service: _LinkedRole(f"AWSServiceRoleFor{role}", policy)
    for service, role, policy in (line.split() for line in _TABLE.splitlines())
}
