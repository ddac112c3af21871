"""Entities: the kinds of things that IAM keeps, and how each is found, named and shown."""

import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from redrive.access.identities import (
    GROUP,
    INSTANCE_PROFILE,
    MANAGED_POLICY,
    ROLE,
    USER,
    Group,
    InstanceProfile,
    ManagedPolicy,
    Named,
    PolicyHolder,
    Role,
    User,
    key_of,
)
from redrive.aws.iam.documents import handed_back
from redrive.aws.iam.errors import TAGS, absent, invalid
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Documents, Draft

N = TypeVar("N", bound=Named)
H = TypeVar("H", bound=PolicyHolder)

_ID_CHARS: Final = 17
_ID_ALPHABET: Final = string.ascii_uppercase + "234567"


@dataclass(frozen=True, slots=True)
class Entity(Generic[N]):
    """A kind of things."""

    kind: DocumentKind[N]
    word: str  # In names of operations and parameters: `Role`
    prefix: str  # The beginning of unique ids
    missing: str  # The text for a name that nothing has
    standing: str  # The text for a name that something has
    inline_chars_max: int = 0  # The characters of all inline policies together

    @property
    def parameter(self) -> str:
        """The parameter that has the name."""
        return f"{self.word}Name"

    def new_id(self, rng: random.Random) -> str:
        """A unique id."""
        return self.prefix + "".join(rng.choices(_ID_ALPHABET, k=_ID_CHARS))

    async def get(self, source: Documents | Draft, account: str, name: str) -> N:
        """The thing of a name; raises AwsError if there is none."""
        entity = await source.get(self.kind, key_of(account, name))
        if entity is None:
            raise absent(self.missing.format(name))
        return entity


USERS: Final[Entity[User]] = Entity(
    USER, "User", "AIDA", "The user with name {} cannot be found.", "User with name {} already exists.", 2048
)
GROUPS: Final[Entity[Group]] = Entity(
    GROUP,
    "Group",
    "AGPA",
    "The group with name {} cannot be found.",
    "Group with name {} already exists.",
    5120,
)
ROLES: Final[Entity[Role]] = Entity(
    ROLE,
    "Role",
    "AROA",
    "The role with name {} cannot be found.",
    "Role with name {} already exists.",
    10_240,
)
PROFILES: Final[Entity[InstanceProfile]] = Entity(
    INSTANCE_PROFILE,
    "InstanceProfile",
    "AIPA",
    "Instance Profile {} cannot be found.",
    "Instance Profile {} already exists.",
)
POLICIES: Final[Entity[ManagedPolicy]] = Entity(
    MANAGED_POLICY,
    "Policy",
    "ANPA",
    "Policy {} was not found.",
    "A policy called {} already exists. Duplicate names are not allowed.",
)

#: Users, groups and roles.
HOLDERS: Final[tuple[Entity[Any], ...]] = (GROUPS, USERS, ROLES)


def name_in(call: Call, params: Structure) -> str:
    """The user that a call names, or the one that it comes from.

    Raises:
        AwsError: It names none, and comes from none.
    """
    name: str = params.get("UserName") or call.principal.keys.get("aws:username", "")
    if not name:
        raise invalid("Must specify userName when calling with non-User credentials")
    return name


def in_path(params: Structure) -> Callable[[Named], bool]:
    """Tells whether something stands under the path that a call asks about."""
    prefix: str = params.get("PathPrefix") or "/"
    return lambda entity: entity.path.startswith(prefix)


# ---- as answers have them -----------------------------------------------------------------------------------------


def shown_user(user: User, *, whole: bool = True) -> Structure:
    """A user; lists leave out the tags and the boundary."""
    members = _as_structure("User", user)
    return {**members, **_more(user)} if whole else members


def shown_group(group: Group) -> Structure:
    """A group."""
    return _as_structure("Group", group)


def shown_role(role: Role, *, whole: bool = True) -> Structure:
    """A role; lists leave out the tags and the boundary."""
    members = {
        **_as_structure("Role", role),
        "AssumeRolePolicyDocument": handed_back(role.trust),
        "MaxSessionDuration": role.max_session_seconds,
    }
    if role.description or role.is_described:
        members["Description"] = role.description
    return {**members, **_more(role), "RoleLastUsed": {}} if whole else members


def shown_profile(profile: InstanceProfile, roles: list[Role], *, whole: bool = True) -> Structure:
    """An instance profile; lists leave out the tags."""
    members = {
        **_as_structure("InstanceProfile", profile),
        "Roles": [shown_role(role, whole=False) for role in roles],
    }
    return {**members, "Tags": TAGS.as_list(profile.tags)} if whole and profile.tags else members


def shown_policy(policy: ManagedPolicy, attachments: int, *, whole: bool = True) -> Structure:
    """A managed policy; lists leave out the description and the tags."""
    members = {
        **_as_structure("Policy", policy),
        "DefaultVersionId": f"v{policy.default}",
        "AttachmentCount": attachments,
        "PermissionsBoundaryUsageCount": policy.boundaries,
        "IsAttachable": True,
        "UpdateDate": policy.updated_at,
    }
    if whole and policy.description:
        members["Description"] = policy.description
    if whole and policy.tags:
        members["Tags"] = TAGS.as_list(policy.tags)
    return members


def _as_structure(word: str, reference: Named) -> dict[str, Any]:
    return {
        "Path": reference.path,
        f"{word}Name": reference.name,
        f"{word}Id": reference.id,
        "Arn": reference.arn,
        "CreateDate": reference.created_at,
    }


def _more(holder: PolicyHolder) -> Structure:
    more: Structure = {}
    if holder.boundary:
        more["PermissionsBoundary"] = {
            "PermissionsBoundaryType": "Policy",
            "PermissionsBoundaryArn": holder.boundary,
        }
    if holder.tags:
        more["Tags"] = TAGS.as_list(holder.tags)
    return more
