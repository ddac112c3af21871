"""Makes `types/schemas.json` of the schemas that cfn-lint publishes (MIT-0), for the types that Redrive makes.

`python -m tests.aws.cloudformation.make_schemas SITE_PACKAGES_WITH_CFN_LINT`, with cfn-lint installed anywhere:
of its 32 MB the server needs what these types are checked by, without the prose.
"""

import json
import sys
from pathlib import Path
from typing import Any

from redrive.aws.cloudformation.types.schema import SCHEMAS

TYPES = {
    "SQS": "Queue QueuePolicy QueueInlinePolicy",
    "SNS": "Topic TopicPolicy TopicInlinePolicy Subscription",
    "Lambda": "Function Version Alias Permission EventSourceMapping EventInvokeConfig LayerVersion Url",
    "Logs": "LogGroup LogStream MetricFilter SubscriptionFilter ResourcePolicy",
    "KinesisFirehose": "DeliveryStream",
    "S3": "Bucket BucketPolicy",
    "CloudWatch": "Alarm CompositeAlarm Dashboard",
    "KMS": "Key Alias",
    "IAM": "Role Policy RolePolicy ManagedPolicy User Group AccessKey InstanceProfile",
    "SSM": "Parameter",
    "CloudFormation": "Stack WaitCondition WaitConditionHandle",
    "ApiGateway": (
        "RestApi Resource Method Deployment Stage Account Model RequestValidator ApiKey UsagePlan UsagePlanKey"
        " GatewayResponse Authorizer"
    ),
    "ApiGatewayV2": "Api Route Integration Stage Deployment Authorizer",
}
# Patterns are for other regular expressions than Python's; what a service refuses it says by itself.
KEPT = (
    "type",
    "required",
    "enum",
    "items",
    "properties",
    "additionalProperties",
    "$ref",
    "patternProperties",
)


def compact(schema: Any) -> Any:
    """Returns a schema without what nobody checks by."""
    found = {key: schema[key] for key in KEPT if key in schema}
    for key in ("properties", "patternProperties"):
        if key in found:
            found[key] = {name: compact(child) for name, child in found[key].items()}
    if isinstance(found.get("items"), dict):
        found["items"] = compact(found["items"])
    return found


def top_level(schema: dict[str, Any], key: str) -> list[str]:
    """Returns the names of properties among paths, those within properties left out."""
    paths = (path.removeprefix("/properties/") for path in schema.get(key, ()))
    return sorted(path for path in paths if "/" not in path)


def row(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns what is kept of the schema of a type."""
    definitions = schema.get("definitions", {})
    return {
        **compact(schema),
        "definitions": {name: compact(child) for name, child in definitions.items()},
        "createOnly": top_level(schema, "createOnlyProperties"),
        "readOnly": sorted(
            path.removeprefix("/properties/") for path in schema.get("readOnlyProperties", ())
        ),
        "writeOnly": top_level(schema, "writeOnlyProperties"),
    }


def main(packages: str) -> None:
    """Write the file."""
    folder = Path(packages, "cfnlint", "data", "schemas")
    of_types = json.loads((folder / "providers" / "us-east-1.json").read_text())
    rows = {}
    for kind in (f"AWS::{service}::{name}" for service, names in TYPES.items() for name in names.split()):
        rows[kind] = row(json.loads((folder / "resources" / f"{of_types[kind]}.json").read_text()))
    SCHEMAS.write_text(json.dumps(rows, separators=(",", ":"), sort_keys=True) + "\n")
    sys.stdout.write(f"{len(rows)} types, {SCHEMAS.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1])
