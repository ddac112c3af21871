"""Identities as a store has them: users, groups and roles, their policies, instance profiles; and Amazon's own policies.

Of Amazon's managed policies these are the ones that people attach to what runs here; none of them can be changed. Their
documents are Amazon's, but for `ReadOnlyAccess`, which is silent of services that are not offered here. The file is made
by `tests/aws/iam/make_managed_policies.py`.
"""

from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import orjson
from typing_extensions import override

from redrive.access.keys import USER_KIND, AccessKey
from redrive.engine.ports import DocumentKind, Store
from redrive.model.document import Document

#: Access keys that a user may have.
USER_KEYS_MAX: Final = 2
MAX_SESSION_SECONDS: Final = 3600  # of a role that says nothing else


@dataclass(frozen=True, slots=True)
class Named(Document):
    """Something of an account that has an ARN of its own."""

    word: ClassVar[str] = ""  # The word for it in ARNs

    account: str  # Twelve digits
    path: str  # Begins and ends with a slash
    name: str  # Unique within the account and the kind, in whatever case
    id: str  # Another one for each that has ever been made
    created_at: int  # ms
    tags: Mapping[str, str] = field(default_factory=dict)  # Free labels

    @property
    def arn(self) -> str:
        """The ARN."""
        return f"arn:aws:iam::{self.account}:{self.word}{self.path}{self.name}"

    @property
    def key(self) -> str:
        """The key of its document."""
        return key_of(self.account, self.name)


@dataclass(frozen=True, slots=True)
class PolicyHolder(Named):
    """A user, a group or a role: policies are attached to it."""

    restored: ClassVar = {"attached": tuple}

    # The texts of its own policies, by their names.
    inline: Mapping[str, str] = field(default_factory=dict)
    attached: tuple[str, ...] = ()  # The ARNs of managed policies
    boundary: str = ""  # The ARN of the managed policy that is its permissions boundary; empty: none


@dataclass(frozen=True, slots=True)
class Group(PolicyHolder):
    """A group of users."""

    word: ClassVar[str] = "group"


@dataclass(frozen=True, slots=True)
class User(PolicyHolder):
    """A user."""

    word: ClassVar[str] = "user"
    restored: ClassVar = {"attached": tuple, "groups": tuple}

    groups: tuple[str, ...] = ()  # The names of the groups that the user is in


@dataclass(frozen=True, slots=True)
class Role(PolicyHolder):
    """A role."""

    word: ClassVar[str] = "role"

    trust: str = ""  # The policy that says who may assume it
    description: str = ""  # Free text
    is_described: bool = False  # It was created with a description, which may be empty
    max_session_seconds: int = MAX_SESSION_SECONDS  # The longest session


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """A version of a managed policy."""

    text: str  # The document
    created_at: int  # ms


@dataclass(frozen=True, slots=True)
class ManagedPolicy(Named):
    """A policy that can be attached."""

    word: ClassVar[str] = "policy"

    description: str = ""  # Free text
    versions: Mapping[int, PolicyVersion] = field(default_factory=dict)  # By their numbers
    default: int = 1  # The number of the version that counts
    last: int = 1  # The number of the version that was made last; none is used again
    updated_at: int = 0  # ms
    attachments: int = 0  # To how many users, groups and roles it is attached
    boundaries: int = 0  # Number of users and roles that it is the boundary of

    @property
    def text(self) -> str:
        """The document of the version that counts."""
        return self.versions[self.default].text

    @classmethod
    @override
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        versions = {int(number): PolicyVersion(**version) for number, version in document["versions"].items()}
        return cls(**{**document, "versions": versions})

    @override
    def to_document(self) -> dict[str, Any]:
        """The policy as a JSON-ready document, in which the numbers of versions are text."""
        fields = super(Named, self).to_document()
        return {
            **fields,
            "versions": {str(number): version for number, version in fields["versions"].items()},
        }


@dataclass(frozen=True, slots=True)
class InstanceProfile(Named):
    """A profile of machines, which tools make beside a role; nothing here runs machines."""

    word: ClassVar[str] = "instance-profile"
    restored: ClassVar = {"roles": tuple}

    roles: tuple[str, ...] = ()  # The names of its roles: one at most


USER: Final = DocumentKind.of("iam_user", User)
GROUP: Final = DocumentKind.of("iam_group", Group)
ROLE: Final = DocumentKind.of("iam_role", Role)
MANAGED_POLICY: Final = DocumentKind.of("iam_policy", ManagedPolicy)
INSTANCE_PROFILE: Final = DocumentKind.of("iam_instance_profile", InstanceProfile)
USER_KEY: Final = DocumentKind.of(USER_KIND, AccessKey)


def key_of(account: str, name: str) -> str:
    """The key of the document of a name."""
    return f"{account}/{name.lower()}"


async def stored_user(store: Store, account: str, name: str) -> User | None:
    """The user of a name, for who has the store and no server."""
    resource = await store.get(USER.name, key_of(account, name))
    return None if resource is None else User.from_document(resource.document)


AMAZON: Final = "aws"  # stands in the place of an account in their ARNs
POLICIES_FILE: Final = Path(__file__).with_name("aws_managed.json")


def _policy(policy_path: str, row: Mapping[str, Any]) -> ManagedPolicy:
    """A managed policy of Amazon's, which has the one version that the table has; its id follows from its path."""
    path, _, name = policy_path.rpartition("/")
    text = orjson.dumps(row["document"], option=orjson.OPT_INDENT_2).decode()
    since, number = int(datetime.fromisoformat(row["date"]).timestamp() * 1000), row["version"]
    return ManagedPolicy(
        AMAZON,
        f"{path}/",
        name,
        f"ANPA{b32encode(sha256(policy_path.encode()).digest()).decode()[:17]}",
        since,
        versions={number: PolicyVersion(text, since)},
        default=number,
        last=number,
        updated_at=since,
    )


@cache
def aws_managed() -> Mapping[str, ManagedPolicy]:
    """The policies by ARN, in the order of their names; read when one is first looked for (20 ms)."""
    rows = orjson.loads(POLICIES_FILE.read_bytes())
    policies = (_policy(path, row) for path, row in rows.items())
    return {policy.arn: policy for policy in sorted(policies, key=lambda policy: policy.name.lower())}
