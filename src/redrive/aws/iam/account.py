"""The account: its summary, all its identities at once, and operations on things that no account has here."""

from operator import itemgetter
from typing import Final

from redrive.access.identities import (
    USER_KEYS_MAX,
    Group,
    ManagedPolicy,
    PolicyHolder,
    Role,
    User,
    aws_managed,
)
from redrive.aws.iam.attachments import ATTACHED_MAX, attached_structure
from redrive.aws.iam.documents import url_encoded
from redrive.aws.iam.entities import (
    GROUPS,
    HOLDERS,
    POLICIES,
    PROFILES,
    ROLES,
    USERS,
    group_structure,
    policy_structure,
    profile_structure,
    role_structure,
    user_structure,
)
from redrive.aws.iam.errors import PAGES, absent
from redrive.aws.iam.policies import VERSIONS_MAX
from redrive.aws.iam.users import GROUPS_MAX
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Resources

#: Amazon's quotas, as the summary has them; those on numbers of entities are not enforced here.
_QUOTAS: Final = {
    "UsersQuota": 5000,
    "GroupsQuota": 300,
    "RolesQuota": 1000,
    "PoliciesQuota": 1500,
    "InstanceProfilesQuota": 1000,
    "ServerCertificatesQuota": 20,
    "SigningCertificatesPerUserQuota": 2,
    "PolicyVersionsInUseQuota": 10_000,
    "UserPolicySizeQuota": USERS.inline_chars_max,
    "GroupPolicySizeQuota": GROUPS.inline_chars_max,
    "RolePolicySizeQuota": ROLES.inline_chars_max,
    "PolicySizeQuota": 6144,
    "AssumeRolePolicySizeQuota": 2048,
    "GroupsPerUserQuota": GROUPS_MAX,
    "AccessKeysPerUserQuota": USER_KEYS_MAX,
    "AttachedPoliciesPerUserQuota": ATTACHED_MAX,
    "AttachedPoliciesPerGroupQuota": ATTACHED_MAX,
    "AttachedPoliciesPerRoleQuota": ATTACHED_MAX,
    "VersionsPerPolicyQuota": VERSIONS_MAX,
    "GlobalEndpointTokenVersion": 2,
    "ServerCertificates": 0,
    "MFADevices": 0,
    "MFADevicesInUse": 0,
    "AccountMFAEnabled": 0,
    "AccountAccessKeysPresent": 1,
    "AccountPasswordPresent": 0,
    "AccountSigningCertificatesPresent": 0,
    "Providers": 0,
}
_NOT_IN_DETAILS: Final = frozenset({"Description", "MaxSessionDuration"})


class AccountReports:
    """Shows an account as a whole."""

    def __init__(self, resources: Resources) -> None:
        self._documents = resources.documents

    async def get_account_summary(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        counts = {
            f"{entity.word}s": len(await self._documents.find(entity.kind, f"{call.account}/"))
            for entity in HOLDERS
        }
        policies = await self._documents.find(POLICIES.kind, f"{call.account}/")
        profiles = await self._documents.find(PROFILES.kind, f"{call.account}/")
        counts |= {"Policies": len(policies), "InstanceProfiles": len(profiles)}
        counts["PolicyVersionsInUse"] = sum(len(policy.versions) for policy in policies)
        return {"SummaryMap": {**_QUOTAS, **counts}}

    async def list_account_aliases(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        """https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListAccountAliases.html; no account has one."""
        return PAGES.of("ListAccountAliases", params, (), str)

    async def get_account_authorization_details(self, call: Call, params: Structure) -> Structure:
        entity_types = set(params.get("Filter") or ())
        prefix = f"{call.account}/"
        users = await self._documents.find(USERS.kind, prefix)
        groups = await self._documents.find(GROUPS.kind, prefix)
        roles = await self._documents.find(ROLES.kind, prefix)
        policies = await self._documents.find(POLICIES.kind, prefix)
        profiles = await self._documents.find(PROFILES.kind, prefix)
        attached_arns = [arn for holder in (*users, *groups, *roles) for arn in holder.attached]
        amazon_policies = [aws_managed()[arn] for arn in sorted(set(attached_arns) & aws_managed().keys())]

        def role_details(role: Role) -> Structure:
            role_profiles = [profile_structure(each, [role]) for each in profiles if role.name in each.roles]
            description = {
                **role_structure(role),
                **_policies(role, "Role"),
                "InstanceProfileList": role_profiles,
            }
            return {name: value for name, value in description.items() if name not in _NOT_IN_DETAILS}

        parts: list[tuple[str, str, Structure]] = []  # each with its list in the answer, and its ARN
        if not entity_types or "User" in entity_types:
            parts += [("UserDetailList", user.arn, _user_details(user)) for user in users]
        if not entity_types or "Group" in entity_types:
            parts += [("GroupDetailList", group.arn, _group_details(group)) for group in groups]
        if not entity_types or "Role" in entity_types:
            parts += [("RoleDetailList", role.arn, role_details(role)) for role in roles]
        if not entity_types or "LocalManagedPolicy" in entity_types:
            parts += [("Policies", each.arn, _policy_details(each, each.attachments)) for each in policies]
        if not entity_types or "AWSManagedPolicy" in entity_types:
            parts += [
                ("Policies", each.arn, _policy_details(each, attached_arns.count(each.arn)))
                for each in amazon_policies
            ]
        arn_of = itemgetter(1)
        parts.sort(key=arn_of)
        page, answer = PAGES.cut("GetAccountAuthorizationDetails", params, parts, arn_of)
        for name in ("UserDetailList", "GroupDetailList", "RoleDetailList", "Policies"):
            answer[name] = [item for member, _, item in page if member == name]
        return answer


class AbsentOperations:
    """Answers about passwords, devices and certificates, which no user has here; tools ask before they delete a user."""

    async def get_login_profile(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        raise absent(f"Login Profile for User {params.get('UserName', '')} cannot be found.")

    async def delete_login_profile(self, call: Call, params: Structure) -> Structure:
        return await self.get_login_profile(call, params)

    async def list_mfa_devices(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        return PAGES.of("ListMFADevices", params, (), str)

    async def list_virtual_mfa_devices(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        return PAGES.of("ListVirtualMFADevices", params, (), str)

    async def list_ssh_public_keys(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        return PAGES.of("ListSSHPublicKeys", params, (), str)

    async def list_signing_certificates(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        return PAGES.of("ListSigningCertificates", params, (), str)

    async def list_service_specific_credentials(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        return {"ServiceSpecificCredentials": []}

    async def list_server_certificates(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        return PAGES.of("ListServerCertificates", params, (), str)


def _policies(holder: PolicyHolder, word: str) -> Structure:
    """The members of a holder's details that have its policies."""
    return {
        f"{word}PolicyList": [
            {"PolicyName": name, "PolicyDocument": url_encoded(text)} for name, text in holder.inline.items()
        ],
        "AttachedManagedPolicies": [attached_structure(arn) for arn in holder.attached],
    }


def _user_details(user: User) -> Structure:
    return {**user_structure(user), **_policies(user, "User"), "GroupList": list(user.groups)}


def _group_details(group: Group) -> Structure:
    return {**group_structure(group), **_policies(group, "Group")}


def _policy_details(policy: ManagedPolicy, attachments: int) -> Structure:
    description = {
        name: value for name, value in policy_structure(policy, attachments).items() if name != "Tags"
    }
    description["PolicyVersionList"] = [
        {
            "Document": url_encoded(version.text),
            "VersionId": f"v{number}",
            "IsDefaultVersion": number == policy.default,
            "CreateDate": version.created_at,
        }
        for number, version in policy.versions.items()
    ]
    return description
