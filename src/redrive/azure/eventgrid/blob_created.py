"""The event of the storage account that a blob of dead letters was written to."""

from typing import Final

from redrive.azure.eventgrid import json_text, names
from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.eventgrid.settings import EVENT_GRID_SCHEMA
from redrive.azure.eventgrid.times import timestamp
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.facts import Attempted
from redrive.engine.ports import FollowUp
from redrive.model.ids import bytes_of, id_text
from redrive.model.message import Publication

TYPE: Final = "Microsoft.Storage.BlobCreated"
_LENGTH: Final = "content-length"


def blob_created(fact: Attempted, path: str, url: str) -> FollowUp | None:
    """The event that a blob of this name at this URL leads to; None where the container is nobody's."""
    container = ArmId.parse(fact.subscription.endpoint)
    account = None if container is None else container._replace(parts=container.parts[:2])
    topic = None if account is None else names.topic_name(account)
    if container is None or account is None or topic is None:
        return None
    body = _event(account, container, fact, path, url)
    text = json_text.written(body)
    publication = Publication(
        id=fact.delivery.message_id,
        body=text,
        bodies={},
        attributes={},
        envelope=PublishedEvent(EVENT_GRID_SCHEMA, account.text, fact.at).envelope(),
        bytes_published=bytes_of(text),
        document=body,
    )
    return FollowUp(topic, publication)


def _event(account: ArmId, container: ArmId, fact: Attempted, path: str, url: str) -> dict[str, object]:
    identifiers = dict(fact.attempt.identifiers)
    request_id = id_text(fact.delivery.message_id)
    details: dict[str, object] = {
        "api": "PutBlob",
        "clientRequestId": request_id,
        "requestId": request_id,
        "eTag": identifiers.get("etag", ""),
        "contentType": "application/json",
        **({"contentLength": int(identifiers[_LENGTH])} if _LENGTH in identifiers else {}),
        "blobType": "BlockBlob",
        "url": url,
        "sequencer": f"{fact.delivery.seq:048x}",
        "storageDiagnostics": {"batchId": request_id},
    }
    return {
        "id": request_id,
        "eventTime": timestamp(fact.at),
        "eventType": TYPE,
        "dataVersion": "",
        "metadataVersion": "1",
        "topic": account.text,
        "subject": f"/blobServices/default/containers/{container.name}/blobs/{path}",
        "data": details,
    }
