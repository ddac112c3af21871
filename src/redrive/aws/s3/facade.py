"""Amazon S3: buckets and objects, as much of it as copying files, code of functions and templates need."""

from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.service import OfferedService
from redrive.aws.s3.bucket_settings import AbsentSettings, BucketSettings
from redrive.aws.s3.buckets import BucketOperations
from redrive.aws.s3.copying import Copying, CopySources
from redrive.aws.s3.documents.access import BucketAccess
from redrive.aws.s3.documents.contents import Contents
from redrive.aws.s3.documents.ports import BlobKeeper
from redrive.aws.s3.listing import ObjectListing
from redrive.aws.s3.multipart import Multipart
from redrive.aws.s3.notifications.destinations import Destinations
from redrive.aws.s3.notifications.notifying import Notifier
from redrive.aws.s3.notifications.operations import NotificationSettings
from redrive.aws.s3.objects import ObjectOperations, Objects, ObjectTags
from redrive.aws.s3.service import SERVICE
from redrive.engine.engine import Engine
from redrive.model.ids import id_text


class S3(OfferedService):
    """S3 on an engine, and on blobs.

    Attributes:
        destinations: What notifications are pushed to.
    """

    def __init__(self, engine: Engine, blobs: BlobKeeper, destinations: Destinations) -> None:
        """Speak for this engine.

        Args:
            engine: Where buckets, objects and uploads are documents, and what brings notifications.
            blobs: Where the contents of objects are.
            destinations: Told of events.
        """
        self.destinations = destinations

        def new_id() -> str:
            return id_text(engine.runtime.message_id())

        contents = Contents(blobs, new_id)
        access = BucketAccess(engine.resources.documents)
        objects = Objects(engine, contents, Notifier(engine))
        sources = CopySources(objects, access)
        super().__init__(
            SERVICE,
            engine,
            operations_of(
                "s3",
                BucketOperations(engine, access, contents),
                BucketSettings(access),
                AbsentSettings(access),
                NotificationSettings(access, destinations, new_id),
                ObjectOperations(objects, access),
                ObjectTags(objects, access),
                ObjectListing(engine.resources.documents, access),
                Copying(objects, access, sources),
                Multipart(engine, objects, access, sources),
            ),
        )
