"""Policies of users about layers and event source mappings."""

from typing import Final

import pytest

from tests.aws.iam.test_closed_by_default import archive
from tests.aws.stage import ACCOUNT, REGION, Refused, Stage, allow, deny, on_stage

LAYER: Final = f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:tools"
MAPPING: Final = (
    f"arn:aws:lambda:{REGION}:{ACCOUNT}:event-source-mapping:2d518aea-9add-4693-a495-ddbd258a3800"
)


def test_versions_of_layers_are_asked_about_by_their_numbers() -> None:
    async def play(stage: Stage) -> None:
        for _ in range(2):
            content = {"ZipFile": archive()}
            await stage.call(stage.root, "lambda", "PublishLayerVersion", LayerName="tools", Content=content)
        ann = await stage.user("ann", allow("lambda:*LayerVersion*", on=f"{LAYER}:1"))
        shown = await stage.call(ann, "lambda", "GetLayerVersion", LayerName="tools", VersionNumber=1)
        assert shown["LayerVersionArn"] == f"{LAYER}:1"
        await stage.call(ann, "lambda", "GetLayerVersionByArn", Arn=f"{LAYER}:1")
        for operation, params in (
            ("GetLayerVersion", {"LayerName": "tools", "VersionNumber": 2}),
            ("GetLayerVersionByArn", {"Arn": f"{LAYER}:2"}),
            ("DeleteLayerVersion", {"LayerName": "tools", "VersionNumber": 2}),
            ("PublishLayerVersion", {"LayerName": "tools", "Content": {"ZipFile": archive()}}),
            ("ListLayers", {}),
        ):
            with pytest.raises(Refused, match="is not authorized to perform"):
                await stage.call(ann, "lambda", operation, **params)
        await stage.call(ann, "lambda", "DeleteLayerVersion", LayerName="tools", VersionNumber=1)

    on_stage(play, functions="on")


def test_tags_of_mappings_are_their_account_s() -> None:
    async def play(stage: Stage) -> None:
        ann = await stage.user("ann")
        with pytest.raises(Refused, match="is not authorized to perform: lambda:ListTags"):
            await stage.call(ann, "lambda", "ListTags", Resource=MAPPING)
        with pytest.raises(Refused, match="is not authorized to perform: lambda:TagResource"):
            await stage.call(ann, "lambda", "TagResource", Resource=MAPPING, Tags={"car": "1"})
        ben = await stage.user("ben", allow("lambda:ListTags", on=MAPPING))
        with pytest.raises(Refused, match="Event source mapping not found"):
            await stage.call(ben, "lambda", "ListTags", Resource=MAPPING)
        eve = await stage.user("eve", allow("lambda:*"), deny("lambda:*", on=MAPPING))
        for spelled in (MAPPING, MAPPING.replace("arn:aws:", "arn:aws-cn:")):
            with pytest.raises(Refused, match="is not authorized to perform: lambda:ListTags"):
                await stage.call(eve, "lambda", "ListTags", Resource=spelled)

    on_stage(play, functions="on")
