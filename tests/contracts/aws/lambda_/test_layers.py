"""Layers: published as versions, used by functions, kept for as long as somebody needs them."""

import base64
import hashlib
import io
import urllib.error
import urllib.request
import zipfile
from typing import Any

import orjson
import pytest

from tests.contracts.aws.lambda_.workshop import ECHO, Workshop, archive
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, refused

OTHER = "210987654321"
LAYER = f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer"
_BIG_BYTES = 131_072_000
_IMPORTS = """
import where, also

def handler(event, context):
    return [where.said, also.said]
"""


def _published(workshop: Workshop, name: str, files: dict[str, str], **more: Any) -> dict[str, Any]:
    content = {"ZipFile": archive(files)}
    made: dict[str, Any] = workshop.client.publish_layer_version(LayerName=name, Content=content, **more)
    return made


def _module(workshop: Workshop, name: str, module: str, said: str) -> str:
    made = _published(workshop, name, {f"python/{module}.py": f"said = {said!r}\n"})
    arn: str = made["LayerVersionArn"]
    return arn


def _big(workshop: Workshop, name: str) -> str:
    """A layer that unpacks to 125 MiB."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("big", bytes(_BIG_BYTES))
    content = {"ZipFile": packed.getvalue()}
    arn: str = workshop.client.publish_layer_version(LayerName=name, Content=content)["LayerVersionArn"]
    return arn


class TestVersions:
    def test_a_version_is_answered_as_recorded(self, workshop: Workshop) -> None:
        code = archive({"python/a.py": ""})
        made = workshop.client.publish_layer_version(
            LayerName="tools",
            Content={"ZipFile": code},
            Description="shared",
            LicenseInfo="MIT",
            CompatibleRuntimes=["python3.11"],
            CompatibleArchitectures=["x86_64"],
        )
        assert made.pop("ResponseMetadata")["HTTPStatusCode"] == 201
        created, location = made.pop("CreatedDate"), made["Content"].pop("Location")
        assert (len(created), created[-5:]) == (28, "+0000")
        assert made == {
            "Content": {
                "CodeSha256": base64.b64encode(hashlib.sha256(code).digest()).decode(),
                "CodeSize": len(code),
            },
            "LayerArn": f"{LAYER}:tools",
            "LayerVersionArn": f"{LAYER}:tools:1",
            "Version": 1,
            "Description": "shared",
            "LicenseInfo": "MIT",
            "CompatibleRuntimes": ["python3.11"],
            "CompatibleArchitectures": ["x86_64"],
        }
        with urllib.request.urlopen(location) as answer:
            assert answer.read() == code
        shown = workshop.client.get_layer_version(LayerName=f"{LAYER}:tools", VersionNumber=1)
        by_arn = workshop.client.get_layer_version_by_arn(Arn=f"{LAYER}:tools:1")
        for found in (shown, by_arn):
            assert found["Content"].pop("Location")
            assert {name: found[name] for name in made} == made

    def test_numbers_are_never_used_twice(self, workshop: Workshop) -> None:
        for number in (1, 2):
            assert _published(workshop, "tools", {"a": ""})["Version"] == number
        workshop.client.delete_layer_version(LayerName="tools", VersionNumber=2)
        workshop.client.delete_layer_version(LayerName="tools", VersionNumber=2)
        assert _published(workshop, "tools", {"a": ""})["Version"] == 3
        with refused("ResourceNotFoundException", "The resource you requested does not exist.", 404):
            workshop.client.get_layer_version(LayerName="tools", VersionNumber=2)
        with refused("ResourceNotFoundException", "The resource you requested does not exist.", 404):
            workshop.client.get_layer_version_by_arn(Arn=f"{LAYER}:tools:2")
        with refused("InvalidParameterValueException", "Layer Version Cannot be less than 1"):
            workshop.client.get_layer_version(LayerName="tools", VersionNumber=0)

    def test_lists_show_what_fits_in_pages(self, workshop: Workshop) -> None:
        _published(workshop, "tools", {"a": ""}, CompatibleRuntimes=["python3.11"])
        _published(workshop, "tools", {"a": ""}, CompatibleRuntimes=["nodejs20.x"])
        _published(workshop, "tools", {"a": ""})
        _published(workshop, "basics", {"a": ""}, CompatibleArchitectures=["arm64"])
        client = workshop.client
        layers = client.get_paginator("list_layers").paginate(PaginationConfig={"PageSize": 1})
        shown = [
            (layer["LayerName"], layer["LatestMatchingVersion"]["Version"])
            for page in layers
            for layer in page["Layers"]
        ]
        assert shown == [("basics", 1), ("tools", 3)]
        (fits,) = client.list_layers(CompatibleRuntime="python3.11")["Layers"]
        assert (fits["LayerArn"], fits["LatestMatchingVersion"]["Version"]) == (f"{LAYER}:tools", 1)
        (fits,) = client.list_layers(CompatibleArchitecture="arm64")["Layers"]
        assert fits["LayerName"] == "basics"
        versions = client.get_paginator("list_layer_versions").paginate(
            LayerName="tools", PaginationConfig={"PageSize": 2}
        )
        assert [[version["Version"] for version in page["LayerVersions"]] for page in versions] == [
            [3, 2],
            [1],
        ]
        assert client.list_layer_versions(LayerName="none")["LayerVersions"] == []


class TestUse:
    def test_later_layers_lie_over_earlier_ones(self, workshop: Workshop) -> None:
        first = _published(workshop, "first", {"python/where.py": "said = 1", "python/also.py": "said = 1"})
        second = _module(workshop, "second", "also", "second")
        layers = [first["LayerVersionArn"], second]
        name = workshop.function(_IMPORTS, Layers=layers)
        shown = workshop.client.get_function_configuration(FunctionName=name)["Layers"]
        sizes = [workshop.client.get_layer_version_by_arn(Arn=arn)["Content"]["CodeSize"] for arn in layers]
        assert shown == [{"Arn": arn, "CodeSize": size} for arn, size in zip(layers, sizes, strict=True)]
        assert workshop.call(name).payload == [1, "second"]
        workshop.client.update_function_configuration(FunctionName=name, Layers=layers[::-1])
        assert workshop.call(name).payload == [1, 1]

    def test_a_published_version_keeps_its_layers(self, workshop: Workshop) -> None:
        old, new = (_module(workshop, "kept", "where", said) for said in ("old", "new"))
        source = "import where\n\ndef handler(event, context):\n    return where.said\n"
        name = workshop.function(source, Layers=[old], Publish=True)
        workshop.client.update_function_configuration(FunctionName=name, Layers=[new])
        assert (workshop.call(name).payload, workshop.call(f"{name}:1").payload) == ("new", "old")
        workshop.client.update_function_configuration(FunctionName=name, Layers=[])
        assert workshop.call(name).error == "Unhandled"
        assert "Layers" not in workshop.client.get_function_configuration(FunctionName=name)

    def test_a_deleted_version_stays_with_those_that_use_it(self, workshop: Workshop) -> None:
        layer = _module(workshop, "leaving", "where", "still here")
        location = workshop.client.get_layer_version_by_arn(Arn=layer)["Content"]["Location"]
        source = "import where\n\ndef handler(event, context):\n    return where.said\n"
        name = workshop.function(source, Layers=[layer], Publish=True)
        workshop.client.delete_layer_version(LayerName="leaving", VersionNumber=1)
        with refused("InvalidParameterValueException", f"Layer version {layer} does not exist."):
            workshop.function(Layers=[layer])
        assert workshop.call(name).payload == "still here"
        workshop.client.update_function_configuration(FunctionName=name, Layers=[])
        urllib.request.urlopen(location).close()  # the published version needs it
        workshop.client.delete_function(FunctionName=name)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(location)

    def test_impossible_layers_are_refused_with_their_reason(self, workshop: Workshop) -> None:
        arns = [_module(workshop, f"l{number}", "a", "x") for number in range(6)]
        with refused("InvalidParameterValueException", "Cannot reference more than 5 layers."):
            workshop.function(Layers=arns)
        twice = [arns[0], _module(workshop, "l0", "a", "y")]
        text = (
            "Two different versions of the same layer are not allowed to be referenced in the same function."
            f" {twice[0]} and {twice[1]} are versions of the same layer."
        )
        with refused("InvalidParameterValueException", text):
            workshop.function(Layers=twice)
        elsewhere = arns[0].replace(REGION, "eu-west-1")
        text = f"Layers are not in the same region as the function. Layers are expected to be in region {REGION}."
        with refused("InvalidParameterValueException", text):
            workshop.function(Layers=[elsewhere])

    def test_code_and_layers_have_250_mb_between_them(self, workshop: Workshop) -> None:
        layers = [_big(workshop, name) for name in ("b1", "b2")]
        with refused("InvalidParameterValueException") as error:
            workshop.function(Layers=layers)
        assert error["Message"] == (
            "Function code combined with layers exceeds the maximum allowed size of 262144000 bytes."
            f" The actual size is {2 * _BIG_BYTES + len(ECHO)} bytes."
        )


class TestPolicies:
    def test_a_layer_is_shared_by_its_policy(self, workshop: Workshop) -> None:
        layer = _module(workshop, "shared", "where", "shared")
        stranger = Workshop(workshop.server, account=OTHER)
        with refused("AccessDeniedException", status=403):
            stranger.client.get_layer_version_by_arn(Arn=layer)
        with refused("AccessDeniedException", status=403):
            stranger.function(Layers=[layer])
        given = {"LayerName": "shared", "VersionNumber": 1, "Action": "lambda:GetLayerVersion"}
        added = workshop.client.add_layer_version_permission(**given, StatementId="s", Principal=OTHER)
        statement = {
            "Sid": "s",
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{OTHER}:root"},
            "Action": "lambda:GetLayerVersion",
            "Resource": layer,
        }
        assert orjson.loads(added["Statement"]) == statement
        shown = workshop.client.get_layer_version_policy(LayerName="shared", VersionNumber=1)
        policy = {"Version": "2012-10-17", "Id": "default", "Statement": [statement]}
        assert (orjson.loads(shown["Policy"]), shown["RevisionId"]) == (policy, added["RevisionId"])
        source = "import where\n\ndef handler(event, context):\n    return where.said\n"
        name = stranger.function(source, Layers=[layer])
        assert stranger.call(name).payload == "shared"

    def test_statements_come_and_go_as_recorded(self, workshop: Workshop) -> None:
        layer = _module(workshop, "policed", "a", "x")
        at = {"LayerName": "policed", "VersionNumber": 1}
        given = {**at, "Action": "lambda:GetLayerVersion", "StatementId": "s", "Principal": "*"}
        client = workshop.client
        with refused("ResourceNotFoundException", "No policy is associated with the given resource.", 404):
            client.get_layer_version_policy(**at)
        added = client.add_layer_version_permission(**given, OrganizationId="o-0123456789")
        condition = {"StringEquals": {"aws:PrincipalOrgID": "o-0123456789"}}
        assert orjson.loads(added["Statement"])["Condition"] == condition
        text = (
            "The statement id (s) provided already exists. Please provide a new statement id, or remove the existing"
            " statement."
        )
        with refused("ResourceConflictException", text, 409):
            client.add_layer_version_permission(**given)
        text = (
            "The Revision Id provided does not match the latest Revision Id. Call the GetLayerPolicy API to retrieve"
            " the latest Revision Id"
        )
        with refused("PreconditionFailedException", text, 412):
            client.remove_layer_version_permission(**at, StatementId="s", RevisionId="another")
        with refused("ResourceNotFoundException", "Statement t is not found in resource policy.", 404):
            client.remove_layer_version_permission(**at, StatementId="t")
        client.remove_layer_version_permission(**at, StatementId="s", RevisionId=added["RevisionId"])
        with refused("ResourceNotFoundException", "No policy is associated with the given resource.", 404):
            client.get_layer_version_policy(**at)
        with refused("ResourceNotFoundException", f"Layer version {layer[:-1]}2 does not exist.", 404):
            client.add_layer_version_permission(**{**given, "VersionNumber": 2})
