"""Types of which a row says all: the operations that make and remove a resource, and the properties that they take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
    as_text,
    lowered,
    without_absence,
)
from redrive.aws.wire.errors import AwsError

#: In a row, the place of the resource's name among the properties.
NAME: Final = ""
Members = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A type of resources, as operations and parameters."""

    service: str  # See `ResourceType`
    create: str  # The operation that makes one
    delete: str  # The operation that removes one
    keys: Members  # The parameters of both, by which a resource is known, each with the property that it has
    # The further ones of `create`; properties that a template leaves out are left out.
    rest: Members = field(default_factory=dict)
    texts: frozenset[str] = frozenset()  # The parameters that take JSON as text
    puts: bool = False  # Whether `create` changes what is there, too; otherwise no property changes in place
    existing: str = ""  # The code with which `create` refuses what is there
    id: str = ""  # The physical id, of properties in braces; empty: the name
    attributes: tuple[str, ...] = ()  # Those of `Fn::GetAtt`, each the physical id
    name_property: str = ""  # See `ResourceType`
    name_chars_max: int = 255  # See `ResourceType`


class RowType(ResourceType):
    """A type that a row describes."""

    def __init__(self, name: str, row: Row) -> None:
        super().__init__(name)
        self._row = row
        self.service = row.service
        self.name_property, self.name_chars_max = row.name_property, row.name_chars_max

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        row = self._row
        try:
            await ask(row.service, row.create, **self._params(spec, {**row.keys, **row.rest}))
        except AwsError as error:
            if not (spec.again and row.existing in (error.code, error.query_code)):
                raise
        return self._state(spec)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self.create(ask, spec) if self._row.puts else self._state(spec)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask(self._row.service, self._row.delete, **self._params(spec, self._row.keys)))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return self._row.id.format_map(spec.properties) or spec.name

    def _params(self, spec: ResourceSpec, members: Members) -> dict[str, Any]:
        params = {}
        for parameter, source in members.items():
            if source == NAME:
                params[parameter] = spec.physical_id or spec.name
            elif source in spec.properties:
                value = spec.properties[source]
                params[parameter] = as_text(value) if parameter in self._row.texts else value
        return params

    def _state(self, spec: ResourceSpec) -> ResourceState:
        physical_id = self._row.id.format_map(spec.properties) or spec.physical_id or spec.name
        return ResourceState(physical_id, dict.fromkeys(self._row.attributes, physical_id))


def _same(*properties: str) -> Members:
    return {name: name for name in properties}


def _lower(*properties: str) -> Members:
    return {lowered(name): name for name in properties}


_ROWS: Final[Mapping[str, Row]] = {
    "AWS::ApiGateway::GatewayResponse": Row(
        service="apigateway",
        create="PutGatewayResponse",
        delete="DeleteGatewayResponse",
        keys=_lower("RestApiId", "ResponseType"),
        rest=_lower("StatusCode", "ResponseParameters", "ResponseTemplates"),
        puts=True,
        attributes=("Id",),
    ),
    "AWS::ApiGateway::UsagePlanKey": Row(
        service="apigateway",
        create="CreateUsagePlanKey",
        delete="DeleteUsagePlanKey",
        keys=_lower("UsagePlanId", "KeyId"),
        rest=_lower("KeyType"),
        existing="ConflictException",
        id="{KeyId}:{UsagePlanId}",
        attributes=("Id",),
        name_chars_max=0,
    ),
    "AWS::IAM::RolePolicy": Row(
        service="iam",
        create="PutRolePolicy",
        delete="DeleteRolePolicy",
        keys=_same("RoleName", "PolicyName"),
        rest=_same("PolicyDocument"),
        texts=frozenset({"PolicyDocument"}),
        puts=True,
        id="{PolicyName}|{RoleName}",
    ),
    "AWS::Lambda::EventInvokeConfig": Row(
        service="lambda",
        create="PutFunctionEventInvokeConfig",
        delete="DeleteFunctionEventInvokeConfig",
        keys=_same("FunctionName", "Qualifier"),
        rest=_same("DestinationConfig", "MaximumEventAgeInSeconds", "MaximumRetryAttempts"),
        puts=True,
    ),
    "AWS::Lambda::Permission": Row(
        service="lambda",
        create="AddPermission",
        delete="RemovePermission",
        keys={"FunctionName": "FunctionName", "StatementId": NAME},
        rest=_same(
            *("Action", "Principal", "SourceArn", "SourceAccount", "EventSourceToken"),
            *("FunctionUrlAuthType", "PrincipalOrgID", "InvokedViaFunctionUrl"),
        ),
        existing="ResourceConflictException",
        attributes=("Id",),
        name_chars_max=100,
    ),
    "AWS::Logs::LogStream": Row(
        service="logs",
        create="CreateLogStream",
        delete="DeleteLogStream",
        keys={"logGroupName": "LogGroupName", "logStreamName": NAME},
        existing="ResourceAlreadyExistsException",
        name_property="LogStreamName",
        name_chars_max=512,
    ),
    "AWS::Logs::ResourcePolicy": Row(
        service="logs",
        create="PutResourcePolicy",
        delete="DeleteResourcePolicy",
        keys=_lower("PolicyName"),
        rest=_lower("PolicyDocument"),
        texts=frozenset({"policyDocument"}),
        puts=True,
        id="{PolicyName}",
        name_property="PolicyName",
    ),
    "AWS::S3::BucketPolicy": Row(
        service="s3",
        create="PutBucketPolicy",
        delete="DeleteBucketPolicy",
        keys=_same("Bucket"),
        rest={"Policy": "PolicyDocument"},
        texts=frozenset({"Policy"}),
        puts=True,
        id="{Bucket}",
        name_chars_max=0,
    ),
}


def _factory(row: Row) -> Factory:
    return lambda name: RowType(name, row)


TYPES: Final[Mapping[str, Factory]] = {name: _factory(row) for name, row in _ROWS.items()}
