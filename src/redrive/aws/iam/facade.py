"""AWS IAM: users, groups, roles and their policies."""

from collections.abc import Iterable, Mapping
from typing import Any

from redrive.access.identities import GROUP, INSTANCE_PROFILE, MANAGED_POLICY, ROLE, USER, USER_KEY
from redrive.access.keys import Keyring
from redrive.aws.iam.access_keys import AccessKeyOperations
from redrive.aws.iam.account import AbsentOperations, AccountReports
from redrive.aws.iam.attachments import Attachments, Boundaries
from redrive.aws.iam.entities import HOLDERS, POLICIES, PROFILES, ROLES, USERS
from redrive.aws.iam.errors import translated
from redrive.aws.iam.groups import GroupOperations
from redrive.aws.iam.inline import InlinePolicies
from redrive.aws.iam.instance_profiles import InstanceProfileOperations
from redrive.aws.iam.permissions import guarded
from redrive.aws.iam.policies import PolicyOperations
from redrive.aws.iam.roles import RoleOperations
from redrive.aws.iam.simulating import Simulating
from redrive.aws.iam.tags import EntityTags
from redrive.aws.iam.users import UserOperations
from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import ResourceScope
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError


class Iam:
    """IAM on an engine; every region shows the same."""

    kinds: tuple[DocumentKind[Any], ...] = (USER, GROUP, ROLE, MANAGED_POLICY, INSTANCE_PROFILE, USER_KEY)
    """All that callers make through this service."""

    def __init__(self, engine: Engine, keyring: Keyring) -> None:
        """Speak for this engine.

        Args:
            engine: Where identities are kept.
            keyring: Told of users' keys that change.
        """
        resources, runtime = engine.resources, engine.runtime
        operations: dict[str, Verb] = {
            **operations_of(
                "iam",
                UserOperations(resources, runtime),
                GroupOperations(resources, runtime),
                RoleOperations(resources, runtime),
                PolicyOperations(resources, runtime),
                AccessKeyOperations(resources, runtime, keyring),
                InstanceProfileOperations(resources, runtime),
                AccountReports(resources),
                AbsentOperations(),
                Simulating(resources),
            ),
        }
        for entity in HOLDERS:
            operations |= InlinePolicies(resources, entity).operations
            operations |= Attachments(resources, entity).operations
        operations |= Boundaries(resources, USERS).operations
        operations |= Boundaries(resources, ROLES).operations
        for labelled in (USERS, ROLES, POLICIES, PROFILES):
            operations |= EntityTags(resources, labelled).operations
        self.operations: Mapping[str, Verb] = guarded(operations, resources.documents)

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:  # noqa: ARG002 - see `Facade`
        """See `Facade.scopes`: each operation asks itself (`permissions`), once it has found what it is about."""
        return ()

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
