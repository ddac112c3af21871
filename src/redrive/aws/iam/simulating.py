"""Simulation: what policies would answer, by the evaluation that answers requests."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from redrive.access.identities import PolicyHolder
from redrive.access.patterns import PolicyInvalid, Values
from redrive.access.policy import AccessRequest, Decision, denial, evaluate, request_keys
from redrive.access.policy_document import Form, parse_policy
from redrive.access.principals import (
    Permissions,
    Principal,
    Source,
    account_root,
    permissions_of,
    user_principal,
)
from redrive.access.statements import Policy, Statement
from redrive.aws.iam.attachments import managed_policy_in
from redrive.aws.iam.entities import GROUPS, HOLDERS
from redrive.aws.iam.errors import PAGES, absent, bad_input
from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import within_budget
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Resources
from redrive.model.budget import STEPS_MAX, Budget

#: A text, which is a member's name where a colon follows, or a bracket.
_TOKEN: Final = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[][{}]')
_OF_MEMBERS: Final = 1  # the depth at which the members of a policy stand
_EVERYTHING: Final = "*"
#: Of a question about policies that say nothing: 30 µs.
_QUESTION_STEPS: Final = 60
#: One question is one call of Python's regular expressions, which let nobody else go on: 50 ms.
_QUESTION_STEPS_MAX: Final = 100_000
#: Characters of policies times characters of a resource's name: one pattern passes over 1,000 in 2 µs.
_PAIRS_PER_STEP: Final = 256
_RESOURCE_POLICY: Final = "ResourcePolicy"  # the id of that in answers
_NO_ID: Final = "AIDA" + "A" * 17
#: By kind of policy that matched: the source's type, as IAM calls it.
_TYPES: Final = {
    Source.IDENTITY: "IAM Policy",
    Source.RESOURCE: "Resource Policy",
    Source.BOUNDARY: "IAM Permissions Boundary",
}


def statement_places(text: str) -> list[Structure]:
    """The places of a policy's statements, in the order in which `Policy` has them: those that deny before the others.

    Each begins and ends behind its brace, as AWS tells it (recorded).
    """
    stated = json.loads(text).get("Statement")
    statements = stated if isinstance(stated, list) else [stated]
    places = zip(statements, _places(text, in_list=isinstance(stated, list)), strict=True)
    return [place for _, place in sorted(places, key=lambda each: each[0]["Effect"].lower() == "allow")]


def _places(text: str, *, in_list: bool) -> list[Structure]:
    own_depth = _OF_MEMBERS + (2 if in_list else 1)
    places: list[Structure] = []
    depth, member, beginning = 0, "", 0
    for token in _TOKEN.finditer(text):
        if token[2] is not None and depth == _OF_MEMBERS:
            member, places = json.loads(token[1]), [] if json.loads(token[1]) == "Statement" else places
        elif token[0] in "{[":
            depth += 1
            beginning = token.end() if depth == own_depth else beginning
        elif token[0] in "}]":
            if depth == own_depth and member == "Statement":
                begin, end = _position(text, beginning), _position(text, token.end())
                places.append({"StartPosition": begin, "EndPosition": end})
            depth -= 1
    return places


def _position(text: str, offset: int) -> dict[str, int]:
    line_start = text.rfind("\n", 0, offset) + 1
    return {"Line": text.count("\n", 0, offset) + 1, "Column": offset - line_start + 1}


class Simulating:
    """Asks policies about calls that nobody makes."""

    def __init__(self, resources: Resources) -> None:
        self._documents = resources.documents

    async def simulate_custom_policy(self, call: Call, params: Structure) -> Structure:
        texts = _texts_by_member("PolicyInputList", params.get("PolicyInputList"))
        return await _simulated("SimulateCustomPolicy", call, params, texts, [])

    async def simulate_principal_policy(self, call: Call, params: Structure) -> Structure:
        texts, boundary = await self._of(call, params["PolicySourceArn"])
        texts |= _texts_by_member("PolicyInputList", params.get("PolicyInputList"))
        request = {"CallerArn": params["PolicySourceArn"], **params}
        return await _simulated("SimulatePrincipalPolicy", call, request, texts, boundary)

    async def get_context_keys_for_custom_policy(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        return _keys(_texts_by_member("PolicyInputList", params["PolicyInputList"]))

    async def get_context_keys_for_principal_policy(self, call: Call, params: Structure) -> Structure:
        texts, _ = await self._of(call, params["PolicySourceArn"])
        return _keys(texts | _texts_by_member("PolicyInputList", params.get("PolicyInputList")))

    async def _of(self, call: Call, arn: str) -> tuple[dict[str, str], list[str]]:
        """The policies of a user, a group or a role by their names, and its boundary."""
        for entity in HOLDERS:
            if f":{entity.word.lower()}/" not in arn:
                continue
            holder = await entity.get(self._documents, call.account, arn.rpartition("/")[2])
            if holder.arn != arn:
                raise absent(entity.missing.format(arn.rpartition("/")[2]))
            holders: list[PolicyHolder] = [holder]
            for name in getattr(holder, "groups", ()):
                holders += [await GROUPS.get(self._documents, call.account, name)]
            texts: dict[str, str] = {}
            for each in holders:
                word = each.word
                texts |= {f"{word}_{each.name}_{name}": text for name, text in each.inline.items()}
                for arn_of_policy in each.attached:
                    texts |= await self._text(arn_of_policy)
            return texts, list((await self._text(holder.boundary)).values()) if holder.boundary else []
        raise bad_input(f"Invalid Entity Arn: {arn} does not clearly define entity type and name.")

    async def _text(self, arn: str) -> dict[str, str]:
        """The text of a managed policy by its ARN; empty: there is none, as of the roles of services."""
        policy = await managed_policy_in(self._documents, arn)
        return {} if policy is None else {arn: policy.text}


def _texts_by_member(member: str, texts: Sequence[str] | None) -> dict[str, str]:
    return {f"{member}.{number}": text for number, text in enumerate(texts or (), start=1)}


def _read(text: str, form: Form = Form.IDENTITY) -> Policy:
    try:
        return parse_policy(text, form)
    except PolicyInvalid as problem:
        raise bad_input(f"Syntax errors in policy. {problem}") from None


def _keys(texts: Mapping[str, str]) -> Structure:
    keys = frozenset[str]().union(*(_read(text).keys for text in texts.values()))
    return {"ContextKeyNames": sorted(keys)}


async def _simulated(
    operation: str, call: Call, params: Structure, texts: Mapping[str, str], bounds: Sequence[str]
) -> Structure:
    """The answers to one page of questions: each action about each resource.

    A question costs at most each character of the policies beside each of the resource's name, which is known before:
    a page has as many questions as 0.2 s are enough for.
    """
    policies = {name: _read(text) for name, text in texts.items()}
    sources = {name: _PolicySource(text, policies[name]) for name, text in texts.items()}
    boundaries = [
        _read(text) for text in (*bounds, *(params.get("PermissionsBoundaryPolicyInputList") or ()))
    ]
    permissions = permissions_of(list(policies.values()), boundaries[-1] if boundaries else None)
    policy_text = params.get("ResourcePolicy")
    of_resource = None if policy_text is None else _read(policy_text, Form.RESOURCE)
    if policy_text is not None and of_resource is not None:
        sources[_RESOURCE_POLICY] = _PolicySource(policy_text, of_resource)
    caller = _caller(call, params, permissions)
    owner = params.get("ResourceOwner") or caller.account
    owner = owner.split(":")[4] if owner.count(":") >= 5 else owner  # noqa: PLR2004 - an ARN's colons
    keys = request_keys(_context(params.get("ContextEntries") or ()))
    condition_keys = frozenset[str]().union(
        permissions.keys, frozenset() if of_resource is None else of_resource.keys
    )
    missing = sorted(condition_keys - keys.keys() - caller.keys.keys())

    def result(question: tuple[str, str]) -> Structure:
        action, resource = question
        request = AccessRequest(caller, action, resource, keys)
        decision = evaluate(of_resource, request, owner)
        if decision.allowed and resource.endswith("*"):
            decision = denial(request) or decision
        description: Structure = {
            "EvalActionName": action,
            "EvalResourceName": resource,
            "EvalDecision": _word(decision),
            "MatchedStatements": _matched(decision, request, sources),
            "MissingContextValues": missing,
            "EvalDecisionDetails": {},
            "OrganizationsDecisionDetail": {"AllowedByOrganizations": True},  # there is none that forbids
        }
        description["ResourceSpecificResults"] = [_of_resource(description)]
        if boundaries:
            within = evaluate(None, _with(request, permissions_of(boundaries[-1:])), owner)
            description["PermissionsBoundaryDecisionDetail"] = {
                "AllowedByPermissionsBoundary": within.allowed
            }
        return description

    actions, resources = params["ActionNames"], params.get("ResourceArns") or (_EVERYTHING,)
    chars = sum(
        map(len, (*texts.values(), *bounds, *(params.get("PermissionsBoundaryPolicyInputList") or ())))
    )
    chars += len(policy_text or "")

    steps = _QUESTION_STEPS + chars * max(map(len, (*actions, *resources))) // _PAIRS_PER_STEP
    if steps > _QUESTION_STEPS_MAX:
        raise bad_input("The policies and the names of resources are too long to be simulated.")
    size = min(PAGES.limit(operation, params), STEPS_MAX // steps)

    def page(budget: Budget) -> Structure:
        def answered(number: int) -> Structure:
            budget.spend(steps)
            return result((actions[number // len(resources)], resources[number % len(resources)]))

        numbers = range(len(actions) * len(resources))
        paging = {**params, "MaxItems": size}
        return PAGES.of(operation, paging, numbers, answered)

    return await within_budget(call.account, page)


def _caller(call: Call, params: Structure, permissions: Permissions) -> Principal:
    """The caller that is played: of an ARN, or anybody of the account."""
    arn = params.get("CallerArn") or f"arn:aws:iam::{call.account}:user/simulated"
    if arn.count(":") < 5:  # noqa: PLR2004 - an ARN's colons
        raise bad_input(f"Invalid CallerArn: {arn}")
    if arn.endswith(":root"):
        return account_root(arn.split(":")[4])
    return user_principal(arn, _NO_ID, {}, permissions)


def _with(request: AccessRequest, permissions: Permissions) -> AccessRequest:
    played = request.principal
    caller = user_principal(played.name, _NO_ID, {}, permissions)
    return AccessRequest(caller, request.action, request.resource, request.keys)


def _context(entries: Iterable[Mapping[str, Any]]) -> dict[str, Values]:
    return {
        entry["ContextKeyName"]: tuple(entry.get("ContextKeyValues") or ())
        for entry in entries
        if entry.get("ContextKeyName")
    }


def _of_resource(description: Structure) -> Structure:
    """A result once more, for its resource."""
    return {
        "EvalResourceName": description["EvalResourceName"],
        "EvalResourceDecision": description["EvalDecision"],
        "MatchedStatements": description["MatchedStatements"],
        "MissingContextValues": [],
    }


def _word(decision: Decision) -> str:
    if decision.allowed:
        return "allowed"
    return "explicitDeny" if decision.explicit else "implicitDeny"


class _PolicySource:
    """A policy of a simulation, and the places of its statements, which are looked for once one matches."""

    def __init__(self, text: str, policy: Policy) -> None:
        self._text = text
        self.statements = policy.statements

    @cached_property
    def places(self) -> list[Structure]:
        """In the order of `statements`."""
        return statement_places(self._text)


def _matched(
    decision: Decision, request: AccessRequest, sources: Mapping[str, _PolicySource]
) -> list[Structure]:
    """The statements that decide it, each with its policy and its place there."""
    if decision.statement is None:
        return []
    if decision.source is Source.BOUNDARY:
        return [{"SourcePolicyId": _RESOURCE_POLICY, "SourcePolicyType": _TYPES[decision.source]}]
    action, principal = request.action.lower(), request.principal
    of_identity = decision.source is Source.IDENTITY

    def decides(statement: Statement) -> bool:
        if statement is decision.statement:
            return True
        same = of_identity and statement.allows is decision.allowed
        return same and statement.applies(principal.identities, action, request.resource, request.lookup)

    return [
        {"SourcePolicyId": name, "SourcePolicyType": _TYPES[decision.source], **source.places[number]}
        for name, source in sources.items()
        if of_identity is (name != _RESOURCE_POLICY)
        for number, statement in enumerate(source.statements)
        if decides(statement)
    ]
