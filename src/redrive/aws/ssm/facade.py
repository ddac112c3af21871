"""AWS Systems Manager on an engine."""

from collections.abc import Iterable, Mapping
from typing import Any

from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import ResourceScope, values_of
from redrive.aws.ssm.errors import translated
from redrive.aws.ssm.parameters import ParameterOperations, plain_name
from redrive.aws.ssm.records import PARAMETER
from redrive.aws.ssm.tags import TAGS, ParameterTags
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError


class Ssm:
    """The parameter store."""

    kinds: tuple[DocumentKind[Any], ...] = (PARAMETER,)
    """All that callers make through this service."""

    def __init__(self, engine: Engine) -> None:
        self.operations: Mapping[str, Verb] = operations_of(
            "ssm", ParameterOperations(engine), TAGS.operations(ParameterTags(engine))
        )

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:  # noqa: ARG002 - see `Facade`
        """See `Facade.scopes`; a selector (`name:3`) is no part of a name, and `a` and `/a` share an ARN."""
        own = f"arn:aws:ssm:{call.region}:{call.account}"
        names = values_of(params, "Name", "Names", "ResourceId")
        scopes = [
            ResourceScope(f"{own}:parameter/{plain_name(name).partition(':')[0].lstrip('/')}")
            for name in names
        ]
        if path := params.get("Path"):
            beginning = f"{own}:parameter/{path.strip('/')}"
            scopes.append(ResourceScope(f"{own}:parameter{path}", (f"{beginning.rstrip('/')}/*",)))
        return scopes or [ResourceScope(f"{own}:*")]

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
