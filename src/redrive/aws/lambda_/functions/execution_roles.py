"""Execution roles: a function's own calls are made as its role, and so is what this server does for the function."""

from typing import Final

from redrive.access.principals import Principal
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import invalid
from redrive.aws.lambda_.documents.lookup import policy_of
from redrive.aws.lambda_.documents.names import of_arn
from redrive.aws.lambda_.documents.records import FUNCTION, Configuration
from redrive.aws.wire.arn import parse_arn
from redrive.engine.ports import Clock
from redrive.engine.resources import Resources
from redrive.model.http import Request
from redrive.model.names import ResourceName
from redrive.model.queue import Queue

#: The actions that hand letters and records over, by the service of their target.
_TARGETS: Final = {
    "sqs": "sqs:SendMessage",
    "sns": "sns:Publish",
    "lambda": "lambda:InvokeFunction",
    "s3": "s3:PutObject",
}
_SOURCE: Final = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
_LOGS: Final = ("logs:CreateLogStream", "logs:PutLogEvents")
_POLICY: Final = "Policy"
_BY_THE_SERVER: Final = Request("POST", "/", "", {}, b"")


class ExecutionRoles:
    """The roles of functions, and what each of them may do at this moment."""

    def __init__(self, identities: Identities, resources: Resources, clock: Clock) -> None:
        self._resources = resources
        self._clock = clock
        self._roles = ServiceRoles(
            identities,
            "lambda",
            "redrive-lambda",
            lambda _: invalid("The role defined for the function cannot be assumed by Lambda."),
        )

    async def check(self, call: Call, role: str) -> None:
        """Refuse a role that the caller may not give a function.

        Raises:
            AwsError: `AccessDeniedException`, or `InvalidParameterValueException` for a role that Lambda cannot assume.
        """
        await self._roles.check(call, role)

    async def check_dead_letters(self, version: Configuration) -> None:
        """Refuse a dead-letter target that the function's role may not send to.

        Raises:
            AwsError: `InvalidParameterValueException`.
        """
        arn = version.dead_letter
        if arn and not await self._may_hand_over(version, arn):
            service = parse_arn(arn).service
            operation = _TARGETS[service].partition(":")[2]
            raise invalid(
                f"The provided execution role does not have permissions to call {operation} on {service.upper()}"
            )

    async def check_destination(self, version: Configuration, arn: str) -> None:
        """Refuse a destination that the function's role may not hand records to.

        Raises:
            AwsError: `InvalidParameterValueException`.
        """
        if arn and not await self._may_hand_over(version, arn):
            operation = _TARGETS[parse_arn(arn).service].partition(":")[2]
            raise invalid(
                f"The function's execution role does not have permissions to call {operation} on {arn}"
            )

    async def check_source(self, version: Configuration, queue: Queue) -> None:
        """Refuse a queue that the function's role may not consume; raises AwsError (`InvalidParameterValueException`)."""
        if missing := await self.missing_of_source(version, queue):
            operation = missing.partition(":")[2]
            raise invalid(f"The provided execution role does not have permissions to call {operation} on SQS")

    async def missing_of_source(self, version: Configuration, queue: Queue) -> str:
        """The first action on a queue that the role needs to consume it, and may not do; empty: it may do all."""
        call = await self._call(version)
        name, policy = queue.name, queue.attributes.get(_POLICY)
        arn = f"arn:aws:sqs:{name.region}:{name.account}:{name.name}"
        return next((each for each in _SOURCE if not call.may(each, arn, name.account, policy)), "")

    async def may_log(self, version: Configuration) -> bool:
        """True if the role may write the function's lines to its log group."""
        call, name = await self._call(version), version.name
        if call.is_open(name.account, policy=None):
            return True
        group = f"arn:aws:logs:{name.region}:{name.account}:log-group:{version.logging['LogGroup']}"
        arn = f"{group}:log-stream:[{version.version}]"
        return all(call.may(each, arn, name.account, policy=None) for each in _LOGS)

    async def principal(self, version: Configuration) -> Principal:
        """The principal that a function's calls are made by."""
        name = version.name
        return await self._roles.role_principal(name.account, version.role, name.region, name.name)

    async def _call(self, version: Configuration) -> Call:
        principal = await self.principal(version)
        return Call(_BY_THE_SERVER, principal, version.name.region, self._clock.now(), "", "")

    async def _may_hand_over(self, version: Configuration, arn: str) -> bool:
        """True if the role or the policy of the target allows handing records to it; bucket policies are not read."""
        service, region, account, name = arn.split(":", 5)[2:]
        call, target = await self._call(version), ResourceName(account, region, name)
        policy: str | None = None
        if service == "sqs":
            queue = await self._resources.queues.get(target)
            policy = None if queue is None else queue.attributes.get(_POLICY)
        elif service == "sns":
            topic = await self._resources.topics.get(target)
            policy = None if topic is None else topic.attributes.get(_POLICY)
        elif service == "lambda" and (reference := of_arn(arn)) is not None:
            function = await self._resources.documents.get(FUNCTION, reference.name.key)
            policy = None if function is None else policy_of(function, reference.qualifier)
        if service == "s3":
            arn = f"{arn}/aws/lambda/async/{version.name.name}/record"  # an object as it would be written
        return call.may(_TARGETS[service], arn, account or version.name.account, policy)
