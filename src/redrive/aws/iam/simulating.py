"""Simulation: the decisions of policies about requests, by the evaluation that decides about real ones."""

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

#: A text, which is the name of a member if a colon follows, or a bracket.
_TOKEN: Final = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[][{}]')
_MEMBERS_DEPTH: Final = 1  # of the members of a policy
_EVERYTHING: Final = "*"
#: Of a question to empty policies: 30 µs.
_QUESTION_STEPS: Final = 60
#: A question may be a single call of a regular expression, which blocks the event loop: 50 ms.
_QUESTION_STEPS_MAX: Final = 100_000
#: Characters of policies times characters of a resource's name: one pattern passes over 1,000 in 2 µs.
_PAIRS_PER_STEP: Final = 256
_RESOURCE_POLICY: Final = "ResourcePolicy"  # its id in answers
_NO_ID: Final = "AIDA" + "A" * 17
#: The names of the kinds of policies in answers.
_TYPES: Final = {
    Source.IDENTITY: "IAM Policy",
    Source.RESOURCE: "Resource Policy",
    Source.BOUNDARY: "IAM Permissions Boundary",
}


def statement_places(text: str) -> list[Structure]:
    """The places of a policy's statements, in the order of `Policy`: those that deny come first.

    A place begins and ends after a brace, as at AWS (recorded).
    """
    member = json.loads(text).get("Statement")
    is_list = isinstance(member, list)
    statements = member if is_list else [member]
    places = zip(statements, _places(text, is_list=is_list), strict=True)
    return [position for _, position in sorted(places, key=lambda each: each[0]["Effect"].lower() == "allow")]


def _places(text: str, *, is_list: bool) -> list[Structure]:
    """The places of statements in the order of the text."""
    statement_depth = _MEMBERS_DEPTH + (2 if is_list else 1)
    places: list[Structure] = []
    depth, member, start = 0, "", 0
    for token in _TOKEN.finditer(text):
        quoted, colon = token.groups()
        if colon is not None and depth == _MEMBERS_DEPTH:
            member = json.loads(quoted)
            places = [] if member == "Statement" else places  # the last member of the name counts
        elif token[0] in "{[":
            depth += 1
            start = token.end() if depth == statement_depth else start
        elif token[0] in "}]":
            if depth == statement_depth and member == "Statement":
                begin, end = _position(text, start), _position(text, token.end())
                places.append({"StartPosition": begin, "EndPosition": end})
            depth -= 1
    return places


def _position(text: str, offset: int) -> dict[str, int]:
    line_start = text.rfind("\n", 0, offset) + 1
    return {"Line": text.count("\n", 0, offset) + 1, "Column": offset - line_start + 1}


class Simulating:
    """Simulates requests, and lists the condition keys of policies."""

    def __init__(self, resources: Resources) -> None:
        self._documents = resources.documents

    async def simulate_custom_policy(self, call: Call, params: Structure) -> Structure:
        texts = _texts_by_member("PolicyInputList", params.get("PolicyInputList"))
        return await _simulate("SimulateCustomPolicy", call, params, texts, [])

    async def simulate_principal_policy(self, call: Call, params: Structure) -> Structure:
        texts, boundary = await self._policies_of(call, params["PolicySourceArn"])
        texts |= _texts_by_member("PolicyInputList", params.get("PolicyInputList"))
        request = {"CallerArn": params["PolicySourceArn"], **params}
        return await _simulate("SimulatePrincipalPolicy", call, request, texts, boundary)

    async def get_context_keys_for_custom_policy(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        return _keys(_texts_by_member("PolicyInputList", params["PolicyInputList"]))

    async def get_context_keys_for_principal_policy(self, call: Call, params: Structure) -> Structure:
        texts, _ = await self._policies_of(call, params["PolicySourceArn"])
        return _keys(texts | _texts_by_member("PolicyInputList", params.get("PolicyInputList")))

    async def _policies_of(self, call: Call, arn: str) -> tuple[dict[str, str], list[str]]:
        """The texts of the policies of a user (with its groups), a group or a role, by name; and that of its boundary."""
        for entity in HOLDERS:
            if f":{entity.word.lower()}/" not in arn:
                continue
            holder = await entity.get(self._documents, call.account, arn.rpartition("/")[2])
            if holder.arn != arn:
                raise absent(entity.absent_text.format(arn.rpartition("/")[2]))
            holders: list[PolicyHolder] = [holder]
            for name in getattr(holder, "groups", ()):
                holders += [await GROUPS.get(self._documents, call.account, name)]
            texts: dict[str, str] = {}
            for each in holders:
                word = each.word
                texts |= {f"{word}_{each.name}_{name}": text for name, text in each.inline.items()}
                for policy_arn in each.attached:
                    texts |= await self._text(policy_arn)
            boundary = await self._text(holder.boundary) if holder.boundary else {}
            return texts, list(boundary.values())
        raise bad_input(f"Invalid Entity Arn: {arn} does not clearly define entity type and name.")

    async def _text(self, arn: str) -> dict[str, str]:
        """The text of a managed policy by its ARN; empty: it does not exist here, as some of service-linked roles."""
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


async def _simulate(
    operation: str, call: Call, params: Structure, texts: Mapping[str, str], own_boundary: Sequence[str]
) -> Structure:
    """The answers to one page of questions: each action about each resource.

    The cost of a question is at most that of comparing each character of the policies with each of the resource's name.
    So it is known before, and a page has as many questions as 0.2 s allow.
    """
    policies = {name: _read(text) for name, text in texts.items()}
    sources = {name: _PolicySource(text, policies[name]) for name, text in texts.items()}
    # The last counts: one of the request, in place of the principal's own.
    boundary_texts = [*own_boundary, *(params.get("PermissionsBoundaryPolicyInputList") or ())]
    boundaries = [_read(text) for text in boundary_texts]
    permissions = permissions_of(list(policies.values()), boundaries[-1] if boundaries else None)
    policy_text = params.get("ResourcePolicy")
    resource_policy = None if policy_text is None else _read(policy_text, Form.RESOURCE)
    if policy_text is not None and resource_policy is not None:
        sources[_RESOURCE_POLICY] = _PolicySource(policy_text, resource_policy)
    caller = _caller(call, params, permissions)
    owner = params.get("ResourceOwner") or caller.account
    owner = owner.split(":")[4] if owner.count(":") >= 5 else owner  # noqa: PLR2004 - an ARN's colons
    keys = request_keys(_context(params.get("ContextEntries") or ()))
    condition_keys = permissions.keys | (frozenset() if resource_policy is None else resource_policy.keys)
    missing = sorted(condition_keys - keys.keys() - caller.keys.keys())

    def result(action: str, resource: str) -> Structure:
        request = AccessRequest(caller, action, resource, keys)
        decision = evaluate(resource_policy, request, owner)
        if decision.allowed and resource.endswith("*"):
            decision = denial(request) or decision
        description: Structure = {
            "EvalActionName": action,
            "EvalResourceName": resource,
            "EvalDecision": _decision_word(decision),
            "MatchedStatements": _matched_statements(decision, request, sources),
            "MissingContextValues": missing,
            "EvalDecisionDetails": {},
            # There are no organizations here.
            "OrganizationsDecisionDetail": {"AllowedByOrganizations": True},
        }
        description["ResourceSpecificResults"] = [_resource_result(description)]
        if boundaries:
            boundary_decision = evaluate(
                None, _with_permissions(request, permissions_of(boundaries[-1:])), owner
            )
            description["PermissionsBoundaryDecisionDetail"] = {
                "AllowedByPermissionsBoundary": boundary_decision.allowed
            }
        return description

    actions, resources = params["ActionNames"], params.get("ResourceArns") or (_EVERYTHING,)
    chars = sum(map(len, (*texts.values(), *boundary_texts, policy_text or "")))
    steps = _QUESTION_STEPS + chars * max(map(len, (*actions, *resources))) // _PAIRS_PER_STEP
    if steps > _QUESTION_STEPS_MAX:
        raise bad_input("The policies and the names of resources are too long to be simulated.")
    size = min(PAGES.limit(operation, params), STEPS_MAX // steps)

    def page(budget: Budget) -> Structure:
        def answer(number: int) -> Structure:
            budget.spend(steps)
            action_index, resource_index = divmod(number, len(resources))
            return result(actions[action_index], resources[resource_index])

        numbers = range(len(actions) * len(resources))
        paging = {**params, "MaxItems": size}
        return PAGES.of(operation, paging, numbers, answer)

    return await within_budget(call.account, page)


def _caller(call: Call, params: Structure, permissions: Permissions) -> Principal:
    """The simulated caller: of an ARN, or else some user of the account."""
    arn = params.get("CallerArn") or f"arn:aws:iam::{call.account}:user/simulated"
    if arn.count(":") < 5:  # noqa: PLR2004 - an ARN's colons
        raise bad_input(f"Invalid CallerArn: {arn}")
    if arn.endswith(":root"):
        return account_root(arn.split(":")[4])
    return user_principal(arn, _NO_ID, {}, permissions)


def _with_permissions(request: AccessRequest, permissions: Permissions) -> AccessRequest:
    caller = user_principal(request.principal.name, _NO_ID, {}, permissions)
    return AccessRequest(caller, request.action, request.resource, request.keys)


def _context(entries: Iterable[Mapping[str, Any]]) -> dict[str, Values]:
    return {
        entry["ContextKeyName"]: tuple(entry.get("ContextKeyValues") or ())
        for entry in entries
        if entry.get("ContextKeyName")
    }


def _resource_result(description: Structure) -> Structure:
    """The part of a result that repeats it for its resource."""
    return {
        "EvalResourceName": description["EvalResourceName"],
        "EvalResourceDecision": description["EvalDecision"],
        "MatchedStatements": description["MatchedStatements"],
        "MissingContextValues": [],
    }


def _decision_word(decision: Decision) -> str:
    if decision.allowed:
        return "allowed"
    return "explicitDeny" if decision.explicit else "implicitDeny"


class _PolicySource:
    """A policy of a simulation, with the places of its statements, which are found only if one matches."""

    def __init__(self, text: str, policy: Policy) -> None:
        self._text = text
        self.statements = policy.statements

    @cached_property
    def places(self) -> list[Structure]:
        """The places of statements, in their order."""
        return statement_places(self._text)


def _matched_statements(
    decision: Decision, request: AccessRequest, sources: Mapping[str, _PolicySource]
) -> list[Structure]:
    """The statements that decide a request, each with its policy and its place in it."""
    if decision.statement is None:
        return []
    if decision.source is Source.BOUNDARY:
        return [{"SourcePolicyId": _RESOURCE_POLICY, "SourcePolicyType": _TYPES[decision.source]}]
    action, principal = request.action.lower(), request.principal
    is_identity = decision.source is Source.IDENTITY

    def decides(statement: Statement) -> bool:
        if statement is decision.statement:
            return True
        has_same_effect = statement.allows is decision.allowed
        return (
            is_identity
            and has_same_effect
            and statement.applies(principal.identities, action, request.resource, request.lookup)
        )

    return [
        {"SourcePolicyId": name, "SourcePolicyType": _TYPES[decision.source], **source.places[number]}
        for name, source in sources.items()
        if is_identity == (name != _RESOURCE_POLICY)  # a policy of the kind that decides
        for number, statement in enumerate(source.statements)
        if decides(statement)
    ]
