"""Entities: users, groups, roles, instance profiles and policies; how each is found, named and described."""

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
from redrive.aws.iam.documents import url_encoded
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
    """A kind of entities."""

    kind: DocumentKind[N]
    word: str  # Its name in operations and parameters: `Role`
    prefix: str  # The beginning of unique ids
    absent_text: str  # The refusal of a name that no entity has
    exists_text: str  # The refusal of a name that an entity has already
    inline_chars_max: int = 0  # The most characters of all inline policies together

    @property
    def parameter(self) -> str:
        """The parameter that has the name."""
        return f"{self.word}Name"

    def new_id(self, rng: random.Random) -> str:
        """A unique id."""
        return self.prefix + "".join(rng.choices(_ID_ALPHABET, k=_ID_CHARS))

    async def get(self, source: Documents | Draft, account: str, name: str) -> N:
        """The entity of a name; raises AwsError if there is none."""
        entity = await source.get(self.kind, key_of(account, name))
        if entity is None:
            raise absent(self.absent_text.format(name))
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
    """The name of the user in a request, or of the calling user; raises AwsError if there is neither."""
    name: str = params.get("UserName") or call.principal.keys.get("aws:username", "")
    if not name:
        raise invalid("Must specify userName when calling with non-User credentials")
    return name


def in_path(params: Structure) -> Callable[[Named], bool]:
    """A filter of entities by the path prefix of a request."""
    prefix: str = params.get("PathPrefix") or "/"
    return lambda entity: entity.path.startswith(prefix)


# ---- answers -----------------------------------------------------------------------------------------------------


def user_structure(user: User, *, with_details: bool = True) -> Structure:
    """A user; lists leave out the tags and the boundary."""
    members = _as_structure("User", user)
    return {**members, **_details(user)} if with_details else members


def group_structure(group: Group) -> Structure:
    """A group."""
    return _as_structure("Group", group)


def role_structure(role: Role, *, with_details: bool = True) -> Structure:
    """A role; lists leave out the tags and the boundary."""
    members = {
        **_as_structure("Role", role),
        "AssumeRolePolicyDocument": url_encoded(role.trust),
        "MaxSessionDuration": role.max_session_seconds,
    }
    if role.description or role.is_described:
        members["Description"] = role.description
    return {**members, **_details(role), "RoleLastUsed": {}} if with_details else members


def profile_structure(profile: InstanceProfile, roles: list[Role], *, with_details: bool = True) -> Structure:
    """An instance profile; lists leave out the tags."""
    members = {
        **_as_structure("InstanceProfile", profile),
        "Roles": [role_structure(role, with_details=False) for role in roles],
    }
    return {**members, "Tags": TAGS.as_list(profile.tags)} if with_details and profile.tags else members


def policy_structure(policy: ManagedPolicy, attachments: int, *, with_details: bool = True) -> Structure:
    """A managed policy; lists leave out the description and the tags."""
    members = {
        **_as_structure("Policy", policy),
        "DefaultVersionId": f"v{policy.default}",
        "AttachmentCount": attachments,
        "PermissionsBoundaryUsageCount": policy.boundaries,
        "IsAttachable": True,
        "UpdateDate": policy.updated_at,
    }
    if with_details and policy.description:
        members["Description"] = policy.description
    if with_details and policy.tags:
        members["Tags"] = TAGS.as_list(policy.tags)
    return members


def _as_structure(word: str, entity: Named) -> dict[str, Any]:
    return {
        "Path": entity.path,
        f"{word}Name": entity.name,
        f"{word}Id": entity.id,
        "Arn": entity.arn,
        "CreateDate": entity.created_at,
    }


def _details(holder: PolicyHolder) -> Structure:
    """The members of a holder that only its own description has."""
    details: Structure = {}
    if holder.boundary:
        details["PermissionsBoundary"] = {
            "PermissionsBoundaryType": "Policy",
            "PermissionsBoundaryArn": holder.boundary,
        }
    if holder.tags:
        details["Tags"] = TAGS.as_list(holder.tags)
    return details
