"""The process that translates one serverless template: JSON in, JSON out.

In: `{"template": …, "parameters": {name: text}}`. Out: `{"template": …}` or `{"refusal": text}`.
"""

import json
import resource
import sys
from typing import Any, Final

from samtranslator.model.exceptions import InvalidDocumentException
from samtranslator.translator.transform import transform

from redrive.access.identities import aws_managed

_CPU_SECONDS_MAX: Final = 30
_MEMORY_BYTES_MAX: Final = 2**30


class KnownPolicies:
    """Amazon's managed policies that this server has, as the translator asks for them."""

    def load(self) -> dict[str, str]:
        """The ARNs of policies by their names."""
        return {policy.name: arn for arn, policy in aws_managed().items()}


def translated(task: dict[str, Any]) -> dict[str, Any]:
    """The answer to a task."""
    try:
        return {"template": transform(task["template"], task["parameters"], KnownPolicies())}
    except InvalidDocumentException as refusal:
        causes = " ".join(sorted(cause.message for cause in refusal.causes))
        return {"refusal": f"{refusal.message} {causes}"}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS_MAX, _CPU_SECONDS_MAX))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
    json.dump(translated(json.load(sys.stdin)), sys.stdout)
