"""Lambda's recorded refusals, each in the words of its operation."""

from typing import Any, Final

import pytest

from tests.aws.recorded.test_lambda import FUNCTION, ROLE, new_function, package, played
from tests.aws.stage import ACCOUNT, REGION, Refused, Stage

UUID: Final = "00000000-0000-0000-0000-000000000000"
# What is asked of a function `f`, which has the version 1 and an alias `live` for it with provisioned concurrency.
_ABSENT: Final = {
    "DeleteFunction": {"FunctionName": "absent", "Qualifier": "7"},
    "GetProvisionedConcurrencyConfig": {"FunctionName": "f", "Qualifier": "none"},
    "DeleteProvisionedConcurrencyConfig": {"FunctionName": "absent", "Qualifier": "none"},
    "PutProvisionedConcurrencyConfig": {
        "FunctionName": "f",
        "Qualifier": "7",
        "ProvisionedConcurrentExecutions": 1,
    },
    "AddPermission": {
        "FunctionName": "f",
        "Qualifier": "a$b",
        "StatementId": "s",
        "Action": "lambda:InvokeFunction",
        "Principal": "*",
    },
    "RemovePermission": {"FunctionName": "f", "Qualifier": "none", "StatementId": "s"},
    "CreateAlias": {"FunctionName": "absent", "Name": "x", "FunctionVersion": "7"},
    "UpdateFunctionUrlConfig": {"FunctionName": "f", "Qualifier": "none"},
    "Invoke": {"FunctionName": "a" * 65},
    "ListTags": {"Resource": f"arn:aws:lambda:{REGION}:{ACCOUNT}:event-source-mapping:{UUID}"},
    "UntagResource": {
        "Resource": f"arn:aws:lambda:{REGION}:{ACCOUNT}:capacity-provider:x",
        "TagKeys": ["car"],
    },
}
_ABSENT_TEXTS: Final = {
    "DeleteFunction": f"Function not found: {FUNCTION}:absent",
    "GetProvisionedConcurrencyConfig": f"Cannot find alias arn: {FUNCTION}:f:none",
    "DeleteProvisionedConcurrencyConfig": f"Cannot find alias arn: {FUNCTION}:absent:none",
    "PutProvisionedConcurrencyConfig": f"Function not found: {FUNCTION}:f:7",
    "AddPermission": f"Function not found: {FUNCTION}:f:a$b",
    "RemovePermission": f"Cannot find alias arn: {FUNCTION}:f:none",
    "CreateAlias": f"Function not found: {FUNCTION}:absent:7",
    "UpdateFunctionUrlConfig": "Function does not exist",
    "Invoke": f"Function not found: {FUNCTION}:{'a' * 65}:$LATEST",
    "ListTags": f"Event source mapping not found: {_ABSENT['ListTags']['Resource']}",
    "UntagResource": f"Capacity provider not found: {_ABSENT['UntagResource']['Resource']}",
}
_OWN: Final = "arn:aws:sqs:us-east-1:111111111111:orders"
_INVALID: Final[list[tuple[str, dict[str, Any], str]]] = [
    (
        "PutFunctionEventInvokeConfig",
        {"FunctionName": "f", "DestinationConfig": {"OnSuccess": {"Destination": f"{FUNCTION}:absent"}}},
        f"The destination ARN {FUNCTION}:absent is invalid.",
    ),
    (
        "PutFunctionEventInvokeConfig",
        {"FunctionName": "f", "DestinationConfig": {"OnSuccess": {"Destination": ROLE}}},
        (
            f"The provided destination config DestinationConfig(onSuccess=OnSuccess(destination={ROLE}),"
            f" onFailure=null) is"
            " invalid."
        ),
    ),
    (
        "PutFunctionEventInvokeConfig",
        {"FunctionName": "f", "DestinationConfig": {"OnFailure": {"Destination": "bad"}}},
        (
            "1 validation error detected: Value 'bad' at 'destinationConfig.onFailure.destination' failed to satisfy"
            r" constraint: Member must satisfy regular expression pattern: $|kafka://([^.]([a-zA-Z0-9\-_.]{0,248}))|"
            r"arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\-])+:((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1})?:(\d"
            r"{12})?:(.*)"
        ),
    ),
    (
        "PutProvisionedConcurrencyConfig",
        {"FunctionName": "f", "Qualifier": "live", "ProvisionedConcurrentExecutions": 1001},
        "Specified ConcurrentExecutions for function is greater than account's unreserved concurrency [1000].",
    ),
    (
        "PutProvisionedConcurrencyConfig",
        {"FunctionName": "f", "Qualifier": "live", "ProvisionedConcurrentExecutions": 901},
        (
            "Specified ConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below"
            " its minimum"
            " value of [100]."
        ),
    ),
    (
        "PutProvisionedConcurrencyConfig",
        {"FunctionName": "f", "Qualifier": "1", "ProvisionedConcurrentExecutions": 1},
        "Version is pointed by a Provisioned Concurrency alias",
    ),
    (
        "PutFunctionConcurrency",
        {"FunctionName": "f", "ReservedConcurrentExecutions": 901},
        (
            "Specified ReservedConcurrentExecutions for function decreases account's"
            " UnreservedConcurrentExecution below its"
            " minimum value of [100]."
        ),
    ),
    (
        "UpdateAlias",
        {
            "FunctionName": "f",
            "Name": "live",
            "RoutingConfig": {"AdditionalVersionWeights": {"2": 2.0}},
        },
        (
            "1 validation error detected: Value '{2=2.0}' at 'routingConfig.additionalVersionWeights' failed to satisfy"
            " constraint: Map value must satisfy constraint: [Member must have value less than or equal to 1.0,"
            " Member must"
            " have value greater than or equal to 0.0, Member must not be null]"
        ),
    ),
    (
        "TagResource",
        {"Resource": "arn:aws:lambda", "Tags": {"car": "1"}},
        (
            "1 validation error detected: Value 'arn:aws:lambda' at 'resource' failed to satisfy constraint: Member must"
            r" satisfy regular expression pattern:"
            r" arn:(aws[a-zA-Z-]*):lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+"
            r"-\d{1}:\d{12}:(function:[a-zA-Z0-9-_]+(:(\$LATEST|[a-zA-Z0-9-_]+))?|layer:([a-zA-Z0-9-_]+)"
            r"|code-signing-config:csc-[a-z0-9]{17}|event-source-mapping:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}"
            r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|capacity-provider:[a-zA-Z0-9-_]+)"
        ),
    ),
    (
        "TagResource",
        {"Resource": f"{FUNCTION}:f", "Tags": {}},
        "An error occurred and the request cannot be processed.",
    ),
    (
        "TagResource",
        {"Resource": f"{FUNCTION}:f", "Tags": {str(number): "" for number in range(51)}},
        "Number of tags exceeds resource tag limit.",
    ),
    (
        "UntagResource",
        {"Resource": f"{FUNCTION}:f"},
        "1 validation error detected: Value null at 'tagKeys' failed to satisfy constraint: Member must not be null",
    ),
    (
        "CreateEventSourceMapping",
        {
            "FunctionName": "absent",
            "EventSourceArn": _OWN,
            "DestinationConfig": {"OnFailure": {"Destination": _OWN}},
        },
        "Unsupported DestinationConfig parameter for given event source mapping type.",
    ),
    (
        "CreateEventSourceMapping",
        {"FunctionName": "absent", "EventSourceArn": _OWN},
        "Function does not exist",
    ),
    (
        "PutFunctionRecursionConfig",
        {"FunctionName": "f", "RecursiveLoop": "Stop"},
        (
            "1 validation error detected: Value 'Stop' at 'recursiveLoop' failed to satisfy constraint: Member"
            " must satisfy"
            " enum value set: [Terminate, Allow]"
        ),
    ),
]


def oversized_archive() -> bytes:
    """An archive that says of its one entry that it is larger than a function may be."""
    archive = bytearray(package())
    directory = archive.index(b"PK\x01\x02")
    archive[directory + 24 : directory + 28] = (262_144_001).to_bytes(4, "little")
    return bytes(archive)


_UNCREATED: Final[list[tuple[dict[str, Any], str]]] = [
    (
        {"Architectures": ["z80"]},
        (
            "1 validation error detected: Value '[z80]' at 'architectures' failed to satisfy constraint: Member"
            " must satisfy"
            " constraint: [Member must satisfy enum value set: [x86_64, arm64], Member must not be null]"
        ),
    ),
    (
        {"Layers": [f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:x"]},
        (
            f"1 validation error detected: Value '[arn:aws:lambda:{REGION}:{ACCOUNT}:layer:x]' at 'layers' failed"
            f" to satisfy"
            " constraint: Member must satisfy constraint: [Member must have length less than or equal to 2048,"
            " Member must"
            " have length greater than or equal to 1, Member must satisfy regular expression pattern:"
            r" (arn:(aws[a-zA-Z-]*)?:lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:\d{12}:"
            r"layer:[a-zA-Z0-9-_]+:[0-9]+)|(arn:[a-zA-Z0-9-]+:lambda:::awslayer:[a-zA-Z0-9-_]+), Member must not be null]"
        ),
    ),
    (
        {"Tags": {str(number): "" for number in range(51)}},
        "Number of tags exceeds resource tag limit.",
    ),
    (
        {"Code": {"ZipFile": oversized_archive()}},
        "Unzipped size must be smaller than 262144000 bytes",
    ),
    (
        {"Code": {"ZipFile": bytes(52_428_801)}},
        "Zipped size must be smaller than 52428800 bytes",
    ),
    (
        {"Layers": [f"arn:aws:lambda:eu-west-1:{ACCOUNT}:layer:x:1"]},
        f"Layers are not in the same region as the function. Layers are expected to be in region {REGION}.",
    ),
    (
        {"VpcConfig": {"SecurityGroupIds": ["group"]}},
        (
            "1 validation error detected: Value '[group]' at 'vpcConfig.securityGroupIds' failed to satisfy"
            " constraint: Member"
            " must satisfy constraint: [Member must have length less than or equal to 1024, Member must have"
            " length greater"
            " than or equal to 0, Member must satisfy regular expression pattern: sg-[0-9a-zA-Z]*]"
        ),
    ),
    (
        {"FunctionName": "no name" * 21},
        (
            f"2 validation errors detected: Value '{'no name' * 21}' at 'functionName' failed to satisfy"
            f" constraint: Member"
            f" must have length less than or equal to 140; Value '{'no name' * 21}' at 'functionName' failed to satisfy"
            r" constraint: Member must satisfy regular expression pattern:"
            r" (arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}"
            r"((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?"
        ),
    ),
]


@pytest.mark.parametrize("operation", ["ListLayers", "ListLayerVersions"])
@pytest.mark.parametrize("member", ["CompatibleRuntime", "CompatibleArchitecture"])
def test_lists_of_layers_know_runtimes_and_architectures(operation: str, member: str) -> None:
    async def play(stage: Stage) -> None:
        asked = {"LayerName": "x"} if operation == "ListLayerVersions" else {}
        refusal = await stage.refusal(stage.root, "lambda", operation, **asked, **{member: "z80"})
        parameter = f"{member[0].lower()}{member[1:]}"
        assert refusal.partition(": ")[2].startswith(
            f"1 validation error detected: Value 'z80' at '{parameter}' failed to satisfy constraint: Member must satisfy"
            " enum value set: ["
        )

    played(play)


def test_each_operation_has_its_own_words_for_absent_and_invalid_parameters() -> None:
    async def play(stage: Stage) -> None:
        await new_function(stage, Publish=True)
        live = {"FunctionName": "f", "Name": "live", "FunctionVersion": "1"}
        await stage.call(stage.root, "lambda", "CreateAlias", **live)
        kept = {"FunctionName": "f", "Qualifier": "live", "ProvisionedConcurrentExecutions": 1}
        await stage.call(stage.root, "lambda", "PutProvisionedConcurrencyConfig", **kept)
        for operation, absent in _ABSENT.items():
            refusal = await stage.refusal(stage.root, "lambda", operation, **absent)
            assert refusal == f"ResourceNotFoundException: {_ABSENT_TEXTS[operation]}"
        for operation, invalid, text in _INVALID:
            refusal = await stage.refusal(stage.root, "lambda", operation, **invalid)
            assert refusal.partition(": ")[2] == text
        for more, text in _UNCREATED:  # `f` stands: what is wrong is told before
            with pytest.raises(Refused) as refused:
                await new_function(stage, more.pop("FunctionName", "f"), **more)
            assert refused.value.message == text

    played(play)
