"""Permissions: the policies that let services and other accounts invoke a function."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.access.keys import is_account
from redrive.access.patterns import PolicyInvalid
from redrive.access.policy_document import new_policy
from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import (
    absent_as,
    conflict,
    error,
    invalid,
    no_such,
    outdated_revision,
)
from redrive.aws.lambda_.documents.lookup import Lookup, function_in, no_alias_or_version, policy_text
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference, is_version
from redrive.aws.lambda_.documents.records import (
    ALIAS,
    FUNCTION,
    VERSION,
    FunctionPolicy,
    FunctionRecord,
    qualified_key,
    version_key,
)
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.names import id_text

POLICY_BYTES_MAX: Final = 20_480
_SERVICE: Final = re.compile(r"[a-z0-9.-]+\.amazonaws\.com(\.cn)?")
_PRINCIPAL: Final = re.compile(r"arn:[a-z-]+:(iam|sts)::[0-9]{12}:.+")

# Parameters that become conditions: the operator and the key, as recorded.
_CONDITIONS: Final[Mapping[str, tuple[str, str]]] = {
    "SourceArn": ("ArnLike", "AWS:SourceArn"),
    "SourceAccount": ("StringEquals", "AWS:SourceAccount"),
    "FunctionUrlAuthType": ("StringEquals", "lambda:FunctionUrlAuthType"),
    "PrincipalOrgID": ("StringEquals", "aws:PrincipalOrgID"),
    "EventSourceToken": ("StringEquals", "lambda:EventSourceToken"),
    "InvokedViaFunctionUrl": ("Bool", "lambda:InvokedViaFunctionUrl"),
}


class FunctionPermissions:
    """Adds, removes and shows statements of policies."""

    def __init__(self, engine: Engine, lookup: Lookup) -> None:
        self._engine = engine
        self._lookup = lookup

    async def add_permission(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        if reference.qualifier == LATEST:
            raise invalid("We currently do not support adding policies for $LATEST.")
        await self._check(call, reference, "AddPermission")
        statement = _statement(reference, params)
        await self._change(reference, params, lambda policy: with_statement(policy, statement))
        return {"Statement": orjson.dumps(statement).decode()}

    async def remove_permission(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        await self._check(call, reference, "RemovePermission")
        await self._change(reference, params, lambda policy: without_statement(policy, params["StatementId"]))
        return {}

    async def _check(self, call: Call, reference: FunctionReference, action: str) -> None:
        """Check the caller's right to an action, with the text that it has for what is absent."""
        absent = no_alias_or_version(reference)
        if action == "RemovePermission" and reference.qualifier is None:
            absent = no_such(f"No policy found for: {reference.arn}")
        with absent_as(absent):
            await self._lookup.authorized_target(call, reference, action)

    async def get_policy(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        with absent_as(no_such()):  # an absent function is told as an absent policy (recorded)
            target = await self._lookup.authorized_target(call, reference, "GetPolicy")
        policy = target.function.policies.get(reference.qualifier or "")
        if policy is None or not policy.statements:
            raise no_such()
        return {"Policy": policy_text(policy), "RevisionId": policy.revision}

    async def _change(
        self,
        reference: FunctionReference,
        params: Structure,
        change: Callable[[FunctionPolicy], tuple[Mapping[str, Any], ...]],
    ) -> None:
        """Write the statements that `change` makes of a function's policy, under a new revision."""
        revision = id_text(self._engine.runtime.message_id())

        async def decide(draft: Draft) -> None:
            function = await function_in(draft, reference)
            qualifier = reference.qualifier or ""
            revision_before = await _revision_in(draft, function, qualifier)
            before = function.policies.get(qualifier, FunctionPolicy(revision_before))
            if params.get("RevisionId") not in (None, before.revision):
                raise outdated_revision("GetPolicy")
            after = FunctionPolicy(revision, change(before))
            check_policy(after)
            draft.put(FUNCTION, reference.name.key, _with_policy(function, qualifier, after))

        await self._engine.resources.write(decide)


async def _revision_in(draft: Draft, function: FunctionRecord, qualifier: str) -> str:
    """The revision of what has no policy yet: of the function, a version or an alias."""
    if not qualifier:
        return function.latest.revision
    if is_version(qualifier):
        version = await draft.get(VERSION, version_key(function.name, qualifier))
        return function.latest.revision if version is None else version.revision
    alias = await draft.get(ALIAS, qualified_key(function.name, qualifier))
    return function.latest.revision if alias is None else alias.revision


def _with_policy(function: FunctionRecord, qualifier: str, policy: FunctionPolicy) -> FunctionRecord:
    """A function with a policy; its own gives it a new revision, too (recorded)."""
    latest = function.latest if qualifier else replace(function.latest, revision=policy.revision)
    policies = {each: text for each, text in function.policies.items() if each != qualifier}
    if policy.statements:
        policies[qualifier] = policy
    return replace(function, latest=latest, policies=policies)


def with_statement(policy: FunctionPolicy, statement: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The statements of a policy and one more; raises AwsError if it has one of that id already."""
    if any(each["Sid"] == statement["Sid"] for each in policy.statements):
        raise conflict(
            f"The statement id ({statement['Sid']}) provided already exists. Please provide a new statement id,"
            " or remove the existing statement."
        )
    return (*policy.statements, statement)


def without_statement(policy: FunctionPolicy, sid: str) -> tuple[Mapping[str, Any], ...]:
    """The statements of a policy but for one; raises AwsError if it has no such statement."""
    if not policy.statements:
        raise no_such("No policy is associated with the given resource.")
    remaining = tuple(each for each in policy.statements if each["Sid"] != sid)
    if len(remaining) == len(policy.statements):
        raise no_such(f"Statement {sid} is not found in resource policy.")
    return remaining


def check_policy(policy: FunctionPolicy) -> None:
    """Refuse a policy that is too long, or that cannot be evaluated.

    Raises:
        AwsError: `PolicyLengthExceededException` or `InvalidParameterValueException`.
    """
    text = policy_text(policy)
    if len(text) > POLICY_BYTES_MAX:
        raise error(
            "PolicyLengthExceededException",
            f"The final policy size ({len(text)}) is bigger than the limit ({POLICY_BYTES_MAX}).",
        )
    if policy.statements:
        try:
            new_policy(text)
        except PolicyInvalid as problem:
            raise invalid(f"The provided policy is invalid: {problem}") from None


def new_statement(arn: str, params: Structure) -> dict[str, Any]:
    """The statement that a request adds to the policy of a function or a layer, without conditions.

    Raises:
        AwsError: Its principal names nobody.
    """
    return {
        "Sid": params["StatementId"],
        "Effect": "Allow",
        "Principal": principal_of(params["Principal"]),
        "Action": params["Action"],
        "Resource": arn,
    }


def _statement(reference: FunctionReference, params: Structure) -> dict[str, Any]:
    """The statement that a request adds to a function's policy, with its conditions."""
    statement = new_statement(reference.arn, params)
    conditions: dict[str, dict[str, str]] = {}
    for parameter, (operator, key) in _CONDITIONS.items():
        if params.get(parameter):
            value = params[parameter]
            conditions.setdefault(operator, {})[key] = "true" if value is True else value
    if conditions:
        statement["Condition"] = conditions
    return statement


def principal_of(principal: str) -> str | dict[str, str]:
    """The principal of a statement as a policy has it: everybody, an account, a role or a service.

    Raises:
        AwsError: The text names nobody.
    """
    if principal == "*":
        return "*"
    if is_account(principal):
        return {"AWS": f"arn:aws:iam::{principal}:root"}
    if _PRINCIPAL.fullmatch(principal):
        return {"AWS": principal}
    if _SERVICE.fullmatch(principal):
        return {"Service": principal}
    raise invalid("The provided principal was invalid. Please check the principal and try again.")
