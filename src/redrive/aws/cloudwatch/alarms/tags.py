"""Tags of alarms."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from redrive.aws.cloudwatch.alarms.definition import TAGS_MAX, read_arn
from redrive.aws.cloudwatch.alarms.records import ALARMS, Alarm
from redrive.aws.cloudwatch.metrics.errors import error, invalid
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents
from redrive.model.errors import NotFound
from redrive.model.names import ResourceName

_ALARM = "alarm:"


class AlarmTags:
    """Adds, removes and lists tags."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def tag_resource(self, call: Call, params: Structure) -> Structure:
        given = {tag["Key"]: tag["Value"] for tag in params["Tags"]}

        def tagged(tags: Mapping[str, str]) -> Mapping[str, str]:
            if len({**tags, **given}) > TAGS_MAX:
                raise invalid(f"A resource can have at most {TAGS_MAX} tags.")
            return {**tags, **given}

        return await self._change(_name(call, params), tagged)

    async def untag_resource(self, call: Call, params: Structure) -> Structure:
        tag_keys = set(params["TagKeys"])
        return await self._change(
            _name(call, params),
            lambda tags: {key: value for key, value in tags.items() if key not in tag_keys},
        )

    async def list_tags_for_resource(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_ListTagsForResource.html.

        An alarm that is not there has none (recorded).
        """
        alarm = await self._documents.get(ALARMS, _name(call, params).key)
        tags = {} if alarm is None else alarm.tags
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    async def _change(
        self, name: ResourceName, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> Structure:
        def changed(alarm: Alarm) -> Alarm:
            return replace(alarm, tags=change(alarm.tags))

        try:
            await self._documents.update(ALARMS, name.key, changed)
        except NotFound:
            raise error("ResourceNotFoundException") from None
        return {}


def _name(call: Call, params: Structure) -> ResourceName:
    """The alarm that an ARN means; of other resources, and other accounts', there are none here."""
    arn = read_arn(params["ResourceARN"])
    if arn is None or arn.service != "cloudwatch" or not arn.resource.startswith(_ALARM):
        raise invalid(f"The value {params['ResourceARN']} for parameter ResourceARN is invalid.")
    if (arn.account, arn.region) != (call.account, call.region):
        raise error("ResourceNotFoundException")
    return ResourceName(arn.account, arn.region, arn.resource.removeprefix(_ALARM))
