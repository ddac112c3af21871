"""Publish: CloudEvents to a namespace's topic."""

from redrive.azure.eventgrid import json_text
from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, ID
from redrive.azure.namespaces.call import NamespaceCall
from redrive.azure.namespaces.incoming import events_of
from redrive.azure.wire.answers import json_answer
from redrive.engine.engine import Engine
from redrive.model.http import Response
from redrive.model.ids import bytes_of
from redrive.model.message import Publication


class NamespacePublishing:
    """Publishes events."""

    def __init__(self, engine: Engine) -> None:
        self._runtime = engine.runtime
        self._messages = engine.messages

    async def publish(self, call: NamespaceCall) -> Response:
        """Publish all of a request's events, or none of them.

        https://learn.microsoft.com/rest/api/eventgrid/dataplane/publish-cloud-events.
        """
        envelope = PublishedEvent(CLOUD_EVENT_SCHEMA, call.topic.attributes[ID], call.now).envelope()
        publications = []
        for event in events_of(call.request):
            text = json_text.written(event)
            publications.append(
                Publication(
                    id=self._runtime.message_id(),
                    body=text,
                    bodies={},
                    attributes={},
                    envelope=envelope,
                    bytes_published=bytes_of(text),
                    document=event,
                )
            )
        if publications:
            await self._messages.publish(call.topic, publications)
        return json_answer({})
