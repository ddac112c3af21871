"""AWS Systems Manager on an engine."""

from collections.abc import Mapping
from typing import Any

from redrive.aws.kit.call import Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.ssm.errors import translated
from redrive.aws.ssm.parameters import ParameterOperations
from redrive.aws.ssm.records import PARAMETER
from redrive.aws.ssm.tags import ParameterTags
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError


class Ssm:
    """The parameter store."""

    kinds: tuple[DocumentKind[Any], ...] = (PARAMETER,)
    """All that callers make through this service."""

    def __init__(self, engine: Engine) -> None:
        """Speak for this engine."""
        self.operations: Mapping[str, Verb] = operations_of(
            "ssm", ParameterOperations(engine), ParameterTags(engine)
        )

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
