"""Tags of alarms."""

from dataclasses import replace
from typing import Final

from redrive.aws.cloudwatch.alarms.definition import TAGS_MAX, read_arn
from redrive.aws.cloudwatch.alarms.records import ALARMS
from redrive.aws.cloudwatch.metrics.errors import error, invalid
from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents
from redrive.model.errors import NotFound
from redrive.model.names import ResourceName

_ALARM = "alarm:"
TAGS: Final = Tagging(too_many=lambda: invalid(f"A resource can have at most {TAGS_MAX} tags."))


class AlarmTags:
    """Alarms, as `Tagging` labels them."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def tags(self, request: TagRequest) -> Tags:
        """See `Tagged.tags`; an alarm that is not there has none (recorded)."""
        alarm = await self._documents.get(ALARMS, _name(request.call, request.params).key)
        return {} if alarm is None else alarm.tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """See `Tagged.retag`."""
        try:
            await self._documents.update(
                ALARMS,
                _name(request.call, request.params).key,
                lambda alarm: replace(alarm, tags=change(alarm.tags)),
            )
        except NotFound:
            raise error("ResourceNotFoundException") from None


def _name(call: Call, params: Structure) -> ResourceName:
    """The alarm that an ARN means; of other resources, and other accounts', there are none here."""
    arn = read_arn(params["ResourceARN"])
    if arn is None or arn.service != "cloudwatch" or not arn.resource.startswith(_ALARM):
        raise invalid(f"The value {params['ResourceARN']} for parameter ResourceARN is invalid.")
    if (arn.account, arn.region) != (call.account, call.region):
        raise error("ResourceNotFoundException")
    return ResourceName(arn.account, arn.region, arn.resource.removeprefix(_ALARM))
