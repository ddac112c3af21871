"""AWS IAM: users, groups, roles and their policies, which every region shows."""

from collections.abc import Iterable, Mapping
from typing import Final

from redrive.access.identities import GROUP, INSTANCE_PROFILE, MANAGED_POLICY, ROLE, USER, USER_KEY
from redrive.access.keys import KEY_USE
from redrive.aws.gateway.host import Host
from redrive.aws.iam.errors import translated
from redrive.aws.kit.call import Call, ResourceScope, Verb
from redrive.aws.kit.service import AwsService, operations_of
from redrive.aws.wire.profiles import QUERY, Profile
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine


async def _scopes(_: Engine, _call: Call, _operation: str, _params: Structure) -> Iterable[ResourceScope]:
    """Each operation asks itself (`permissions`), once it knows what it is about."""
    return ()


def _operations(host: Host) -> Mapping[str, Verb]:
    from redrive.aws.iam.account import AbsentOperations, AccountReports
    from redrive.aws.iam.attachments import Attachments, Boundaries, InlinePolicies
    from redrive.aws.iam.entities import HOLDERS, POLICIES, PROFILES, ROLES, USERS
    from redrive.aws.iam.entity_operations import EntityTags
    from redrive.aws.iam.permissions import guard_all
    from redrive.aws.iam.policies import PolicyOperations
    from redrive.aws.iam.roles import InstanceProfileOperations, RoleOperations
    from redrive.aws.iam.service_linked_roles import ServiceLinkedRoles, protect_linked_roles
    from redrive.aws.iam.simulating import Simulating
    from redrive.aws.iam.users import AccessKeyOperations, GroupOperations, UserOperations

    resources, runtime = host.engine.resources, host.engine.runtime
    operations: dict[str, Verb] = operations_of(
        "iam",
        UserOperations(resources, runtime, host.pair),
        GroupOperations(resources, runtime),
        RoleOperations(resources, runtime),
        ServiceLinkedRoles(resources, runtime),
        PolicyOperations(resources, runtime),
        AccessKeyOperations(resources, runtime, host.keyring),
        InstanceProfileOperations(resources, runtime),
        AccountReports(resources),
        AbsentOperations(),
        Simulating(resources),
    )
    for entity in HOLDERS:
        operations |= InlinePolicies(resources, entity).operations
        operations |= Attachments(resources, entity).operations
    operations |= Boundaries(resources, USERS).operations
    operations |= Boundaries(resources, ROLES).operations
    for labelled in (USERS, ROLES, POLICIES, PROFILES):
        operations |= EntityTags(resources, labelled).operations
    return guard_all(protect_linked_roles(operations, resources.documents), resources.documents)


SERVICE: Final = AwsService(
    profile=Profile(
        "iam",
        "iam",
        "2010-05-08",
        QUERY,
        large_answers=frozenset({"SimulateCustomPolicy", "SimulatePrincipalPolicy"}),
    ),
    title="Iam",
    documents=(USER, GROUP, ROLE, MANAGED_POLICY, INSTANCE_PROFILE, USER_KEY, KEY_USE),
    translated=translated,
    scopes=_scopes,
    operations=_operations,
)
