"""KMS's recorded answers."""

from datetime import timedelta

from tests.aws.iam.stage import Stage, on_stage
from tests.aws.wire.clients import moment


def test_dates_are_those_of_the_clock() -> None:
    async def play(stage: Stage) -> None:
        now = moment(stage.server.core.runtime.clock.now())
        made = (await stage.call(stage.root, "kms", "CreateKey"))["KeyMetadata"]
        key = {"KeyId": made["KeyId"]}
        await stage.call(stage.root, "kms", "CreateAlias", AliasName="alias/cars", TargetKeyId=made["KeyId"])
        (alias,) = (await stage.call(stage.root, "kms", "ListAliases", **key))["Aliases"]
        await stage.call(stage.root, "kms", "EnableKeyRotation", **key, RotationPeriodInDays=90)
        rotation = await stage.call(stage.root, "kms", "GetKeyRotationStatus", **key)
        deletion = await stage.call(stage.root, "kms", "ScheduleKeyDeletion", **key, PendingWindowInDays=7)
        assert [made["CreationDate"], alias["CreationDate"], alias["LastUpdatedDate"]] == [now] * 3
        assert rotation["NextRotationDate"] == now + timedelta(days=90)
        assert deletion["DeletionDate"] == now + timedelta(days=7)

    on_stage(play)
