"""Amazon's own managed policies, those that people attach to what runs here; none of them can be changed.

Their documents are Amazon's, but for `ReadOnlyAccess`, which is silent of services that are not offered here. The file is
made by `tests/aws/iam/make_managed_policies.py`.
"""

from base64 import b32encode
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from redrive.access.identities import ManagedPolicy, PolicyVersion

AMAZON: Final = "aws"  # stands in the place of an account in their ARNs
POLICIES_FILE: Final = Path(__file__).with_name("aws_managed.json")


def _policy(policy_path: str, row: Mapping[str, Any]) -> ManagedPolicy:
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
    policies = (_policy(place, row) for place, row in rows.items())
    return {policy.arn: policy for policy in sorted(policies, key=lambda policy: policy.name.lower())}
