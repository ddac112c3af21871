"""Permissions to use IAM itself: users and roles may do what their own policies allow."""

from collections.abc import Mapping
from typing import Any, Final

from redrive.access.identities import PolicyHolder, key_of
from redrive.access.patterns import Values
from redrive.aws.iam.entities import GROUPS, PROFILES, ROLES, USERS, Entity
from redrive.aws.iam.errors import denied
from redrive.aws.iam.service_linked_roles import linked_role
from redrive.aws.kit.call import Call, ResourceScope, Verb, values_of
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents

#: The kinds of entities that a call may name; the first is the resource of the call.
_KINDS: Final[tuple[Entity[Any], ...]] = (PROFILES, ROLES, GROUPS, USERS)
#: Calls whose resource is the caller if they name no user.
_OF_CALLER: Final = frozenset(
    {"CreateAccessKey", "DeleteAccessKey", "GetUser", "ListAccessKeys", "UpdateAccessKey"}
)
#: Parameters that are condition keys.
_KEYS: Final = {"AWSServiceName": "iam:awsservicename", "PermissionsBoundary": "iam:permissionsboundary"}
_CREATES: Final = "Create"
_RENAMES: Final = ("NewUserName", "NewGroupName", "NewPath")
_PASSES_ROLE: Final = "AddRoleToInstanceProfile"


def guard_all(operations: Mapping[str, Verb], documents: Documents) -> dict[str, Verb]:
    """The operations, each with a check of the caller's permission before it."""
    return {name: _guard(name, verb, documents) for name, verb in operations.items()}


def _guard(operation: str, verb: Verb, documents: Documents) -> Verb:
    """An operation that checks restricted callers first."""

    async def guard(call: Call, params: Structure) -> Structure:
        if call.principal.is_restricted:
            await _check(call, operation, params, documents)
        return await verb(call, params)

    return guard


async def _check(call: Call, operation: str, params: Structure, documents: Documents) -> None:
    """Refuse what the caller's policies do not allow; raises AwsError (`AccessDenied`)."""
    arn, keys = await _resource_and_keys(call, operation, params, documents)
    entity_arns = [
        await _arn(call, entity, params, documents) for entity in _KINDS if params.get(entity.parameter)
    ]
    scopes = [(f"iam:{operation}", ResourceScope(arn, (*entity_arns, *values_of(params, "PolicyArn"))))]
    # "To change a user name, the requester must have appropriate permissions on both the source object and the target
    # object" (UpdateUser)
    if any(values_of(params, *_RENAMES)):
        scopes += [(f"iam:{operation}", ResourceScope(_renamed_arn(arn, params)))]
    if params.get("Tags") and operation.startswith(_CREATES):  # tags of users and roles are keys of policies
        scopes += [(f"iam:Tag{operation.removeprefix(_CREATES)}", ResourceScope(arn))]
    if operation == _PASSES_ROLE:
        role = await ROLES.get(documents, call.account, params["RoleName"])
        scopes += [("iam:PassRole", ResourceScope(role.arn))]
    for action, scope in scopes:
        decision = call.decide_own(action, scope, keys)
        if not decision.allowed:
            raise denied(call.principal.name, action, scope.arn, decision.reason(action))


async def _resource_and_keys(
    call: Call, operation: str, params: Structure, documents: Documents
) -> tuple[str, Mapping[str, Values]]:
    """The ARN of an operation's resource, and the condition keys that the operation has."""
    keys: dict[str, Values] = {key: params[name] for name, key in _KEYS.items() if params.get(name)}
    for entity in _KINDS:
        name = params.get(entity.parameter)
        if entity is USERS and operation in _OF_CALLER and not name:
            return call.principal.name, keys
        if not name:
            continue
        if params.get("PolicyArn"):
            keys["iam:policyarn"] = params["PolicyArn"]
        if operation == f"Create{entity.word}":
            return _new_arn(call, entity, name, params), keys
        document = await documents.get(entity.kind, key_of(call.account, name))
        if isinstance(document, PolicyHolder) and document.boundary:
            keys.setdefault("iam:permissionsboundary", document.boundary)
        return await _arn(call, entity, params, documents), keys
    return _other_resource(call, operation, params), keys


def _other_resource(call: Call, operation: str, params: Structure) -> str:
    """The ARN of the resource of an operation that names no user, group, role or profile."""
    if params.get("PolicyName") and operation == "CreatePolicy":
        return f"arn:aws:iam::{call.account}:policy{params.get('Path') or '/'}{params['PolicyName']}"
    if role_path := _service_role(params):
        return f"arn:aws:iam::{call.account}:role/{role_path}"
    return params.get("PolicyArn") or params.get("PolicySourceArn") or "*"


def _service_role(params: Structure) -> str:
    """The path and the name of the service-linked role that a call concerns; empty: it concerns none."""
    if service := params.get("AWSServiceName"):
        return linked_role(service, params.get("CustomSuffix") or "") or f"aws-service-role/{service}/*"
    task: str = params.get("DeletionTaskId") or ""
    return task.removeprefix("task/").rpartition("/")[0]


async def _arn(call: Call, entity: Entity[Any], params: Structure, documents: Documents) -> str:
    """The ARN of the entity that a parameter names, whether it exists or not."""
    name = params[entity.parameter]
    document = await documents.get(entity.kind, key_of(call.account, name))
    arn: str = _new_arn(call, entity, name, params) if document is None else document.arn
    return arn


def _renamed_arn(arn: str, params: Structure) -> str:
    """The ARN of a user or a group after its change of name or path."""
    root, _, resource = arn.partition("/")
    path, _, name = f"/{resource}".rpartition("/")
    new_name = next(values_of(params, "NewUserName", "NewGroupName"), name)
    return f"{root}{params.get('NewPath') or f'{path}/'}{new_name}"


def _new_arn(call: Call, entity: Entity[Any], name: str, params: Structure) -> str:
    """The ARN of an entity of a name, as this call would create it."""
    word = "instance-profile" if entity is PROFILES else entity.word.lower()
    return f"arn:aws:iam::{call.account}:{word}{params.get('Path') or '/'}{name}"
