"""Replicas of a key that are created at the same moment."""

import asyncio

from tests.aws.stage import Stage, on_stage

REGIONS = ["ap-south-1", "eu-west-1", "us-west-2"]


def test_replicas_created_together_are_all_listed() -> None:
    async def play(stage: Stage) -> None:
        key = (await stage.call(stage.root, "kms", "CreateKey", MultiRegion=True))["KeyMetadata"]["Arn"]
        await asyncio.gather(
            *(stage.call(stage.root, "kms", "ReplicateKey", KeyId=key, ReplicaRegion=one) for one in REGIONS)
        )
        answer = await stage.call(stage.root, "kms", "DescribeKey", KeyId=key)
        replicas = answer["KeyMetadata"]["MultiRegionConfiguration"]["ReplicaKeys"]
        assert [replica["Region"] for replica in replicas] == REGIONS

    on_stage(play)
