"""Finding functions: what a name and a qualifier mean now, and whether the caller may do what it asks there."""

import random
from typing import Final, NamedTuple

import orjson

from redrive.access.policy import AccessRequest, evaluate, request_keys, resource_keys, source_keys
from redrive.access.policy_document import stored_policy
from redrive.access.principals import service_principal
from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import denied, no_function, no_such
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference, arn_of, is_version, of_arn
from redrive.aws.lambda_.documents.records import (
    ALIAS,
    FUNCTION,
    VERSION,
    Configuration,
    FunctionAlias,
    FunctionPolicy,
    FunctionRecord,
    qualified_key,
    version_key,
)
from redrive.aws.wire.errors import AwsError
from redrive.engine.resources import Documents, Draft
from redrive.model.names import ResourceName

_ARN_PARTS: Final = 6
_TARGETS_MAX: Final = 1_024


class FunctionTarget(NamedTuple):
    """The meaning of a function's name with its qualifier."""

    function: FunctionRecord
    configuration: Configuration  # The version
    alias: FunctionAlias | None = None  # The alias that was named; None: it was a version, or nothing


class Lookup:
    """Finds functions among a server's documents."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        # What ARNs meant, each as of a number of changes of documents.
        self._targets: dict[str, tuple[int, FunctionTarget]] = {}

    async def function(self, call: Call, reference: FunctionReference, action: str) -> FunctionRecord:
        """The function that a caller named, whatever its qualifier: a right to an alias is none to the function.

        Raises:
            AwsError: There is none, or the caller may not.
        """
        function = await self._existing(call, reference, action)
        check(call, function, reference._replace(qualifier=None), action)
        return function

    async def function_as_named(
        self, call: Call, reference: FunctionReference, action: str
    ) -> FunctionRecord:
        """The function, for what concerns only the version or the alias that a caller named; see `function`."""
        function = await self._existing(call, reference, action)
        check(call, function, reference, action)
        return function

    async def _existing(self, call: Call, reference: FunctionReference, action: str) -> FunctionRecord:
        function = await self._documents.get(FUNCTION, reference.name.key)
        if function is None and reference.name.account != call.account:
            raise denied(call.principal.name, action, reference.arn)  # nobody learns what another account has
        if function is None:
            raise no_function(reference.arn)
        return function

    async def authorized_target(
        self, call: Call, reference: FunctionReference, action: str
    ) -> FunctionTarget:
        """The version that a caller named; raises AwsError if there is none, or the caller may not."""
        function = await self.function_as_named(call, reference, action)
        target_version = await self.version(function, reference.qualifier)
        if target_version is None:
            raise no_function(reference.arn)
        return target_version

    async def at(self, arn: str) -> FunctionTarget | None:
        """The version of a full ARN; None if the ARN is not that of a function on this server."""
        known = self.known_at(arn)
        if known is not None:
            return known
        changes = self._documents.changes  # before the reads: a change meanwhile outdates what they find
        reference = of_arn(arn)
        if reference is None:
            return None
        function = await self._documents.get(FUNCTION, reference.name.key)
        target = None if function is None else await self.version(function, reference.qualifier)
        if target is not None:
            if len(self._targets) >= _TARGETS_MAX:
                self._targets.clear()
            self._targets[arn] = changes, target
        return target

    def known_at(self, arn: str) -> FunctionTarget | None:
        """The same, where it was looked up before and no document has changed since, as far as this node knows."""
        known = self._targets.get(arn)
        return None if known is None or known[0] != self._documents.changes else known[1]

    async def version(self, function: FunctionRecord, qualifier: str | None) -> FunctionTarget | None:
        """The version that a qualifier means; None: there is no such version and no such alias."""
        if qualifier is None or qualifier == LATEST:
            return FunctionTarget(function, function.latest)
        alias = None
        if not is_version(qualifier):
            alias = await self._documents.get(ALIAS, qualified_key(function.name, qualifier))
            if alias is None:
                return None
        target_version = await self.version_of_number(function, qualifier if alias is None else alias.version)
        return None if target_version is None else FunctionTarget(function, target_version, alias)

    async def version_of_number(self, function: FunctionRecord, version: str) -> Configuration | None:
        """The version of that number, or `$LATEST`."""
        if version == LATEST:
            return function.latest
        return await self._documents.get(VERSION, version_key(function.name, version))

    async def choose_version(self, target: FunctionTarget, rng: random.Random) -> Configuration:
        """The version that an invocation runs: an alias with a weight sends some to its other version."""
        if target.alias is not None:
            for version, weight in target.alias.weights.items():
                if rng.random() < weight:
                    other = await self.version_of_number(target.function, version)
                    return other or target.configuration
        return target.configuration


async def function_in(draft: Draft, reference: FunctionReference) -> FunctionRecord:
    """The function, which must not change until the draft is written; raises AwsError if there is none."""
    function = await draft.get(FUNCTION, reference.name.key)
    if function is None:
        raise no_function(reference.arn)
    return function


def no_alias_or_version(reference: FunctionReference) -> AwsError:
    """The error of operations that tell an absent alias from an absent function or version (recorded)."""
    qualifier = reference.qualifier
    if qualifier is None or is_version(qualifier) or "$" in qualifier:
        return no_function(reference.arn)
    return no_such(f"Cannot find alias arn: {reference.arn}")


def policy_text(policy: FunctionPolicy) -> str:
    """A policy as `GetPolicy` answers it."""
    document = {"Version": "2012-10-17", "Id": "default", "Statement": list(policy.statements)}
    return orjson.dumps(document).decode()


def policy_of(function: FunctionRecord, qualifier: str | None) -> str | None:
    """The text of the policy of a function, or of one of its versions or aliases; None: it has none."""
    policy = function.policies.get(qualifier or "")
    return None if policy is None or not policy.statements else policy_text(policy)


def check(call: Call, function: FunctionRecord, reference: FunctionReference, action: str) -> None:
    """Refuse an action on a function that the caller has no permission for; raises AwsError (`AccessDeniedException`)."""
    policy = policy_of(function, reference.qualifier)
    # A Deny of a function holds for its versions and aliases: `$LATEST` is but another spelling of it.
    refusal = call.first_denial(f"lambda:{action}", [arn_of(function.name)]) if reference.qualifier else None
    if refusal is not None or not call.may(f"lambda:{action}", reference.arn, function.name.account, policy):
        decision = refusal or call.decide(f"lambda:{action}", reference.arn, function.name.account, policy)
        raise denied(call.principal.name, action, reference.arn, decision)


def may_be_invoked_for(
    function: FunctionRecord, qualifier: str | None, source_arn: str, *, is_open: bool
) -> bool:
    """True if the function's policy lets a resource's service invoke it: `sns.amazonaws.com` for `arn:aws:sns:…`.

    Without a policy a function takes events of its own account if `is_open`. Amazon's does not.
    """
    parts = source_arn.split(":")
    if len(parts) < _ARN_PARTS:
        return False
    service, region, account = parts[2:5]
    text = policy_of(function, qualifier)
    owner = function.name.account
    if text is None:
        return is_open and account == owner
    keys = request_keys(
        resource_keys(region=function.name.region, account=owner),
        source_keys(arn=source_arn, account=account),
    )
    principal = service_principal(service, region)
    access_request = AccessRequest(principal, "lambda:InvokeFunction", arn_of(function.name, qualifier), keys)
    return evaluate(stored_policy(text), access_request, owner).allowed


def key_beginning(name: ResourceName) -> str:
    """The beginning of the keys of a function's versions and aliases."""
    return f"{name.key}/"
