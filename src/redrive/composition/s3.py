"""Amazon S3: buckets and objects, whose contents lie where the setting `blob_store` says."""

from redrive.aws.gateway.rounds import Rounds
from redrive.aws.kit.service import OfferedService, operations_of
from redrive.aws.s3.bucket_settings import BucketSettings, absent_settings
from redrive.aws.s3.buckets import BucketOperations
from redrive.aws.s3.copying import Copying, CopySources
from redrive.aws.s3.documents.access import BucketAccess
from redrive.aws.s3.documents.contents import Contents
from redrive.aws.s3.documents.records import TO_DESTINATION
from redrive.aws.s3.listing import ObjectListing
from redrive.aws.s3.multipart import Multipart
from redrive.aws.s3.notifications.destinations import Destinations, NotificationSettings, Notifier
from redrive.aws.s3.objects import ObjectOperations, Objects, ObjectTags
from redrive.aws.s3.service import SERVICE
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.endpoints.blob_store import BlobStore
from redrive.model.names import id_text


def extension(core: Core) -> Extension:
    """S3; documents are in the store, contents beside the blobs that are dead letters."""
    engine, documents = core.engine, core.engine.resources.documents
    blobs = BlobStore(core.settings.blobs_at, core.ca_file)
    rounds = Rounds(core.secret, core.runtime.rng)
    destinations = Destinations(core.calls, rounds, is_open=core.settings.auth == "off")

    def new_id() -> str:
        return id_text(core.runtime.message_id())

    contents, access = Contents(blobs, new_id), BucketAccess(documents)
    objects = Objects(engine, contents, Notifier(engine))
    sources = CopySources(objects, access)
    operations = operations_of(
        "s3",
        BucketOperations(engine, access, contents),
        BucketSettings(access),
        absent_settings(access),
        NotificationSettings(access, destinations, new_id),
        ObjectOperations(objects, access),
        ObjectTags(objects, access),
        ObjectListing(documents, access),
        Copying(objects, access, sources),
        Multipart(engine, objects, access, sources),
    )
    return Extension(
        interface=Interface(services={"s3": OfferedService(SERVICE, engine, operations)}),
        delivery=DeliveryParts(endpoints={TO_DESTINATION: destinations}),
        lifecycle=Lifecycle(close=(blobs.close,)),
    )
