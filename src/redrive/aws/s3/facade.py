"""Amazon S3: buckets and objects, as much of it as copying files, code of functions and templates need."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from redrive.aws.gateway.owed_calls import OwedCallProfile
from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import ResourceScope
from redrive.aws.s3.access import BucketAccess
from redrive.aws.s3.bucket_settings import AbsentSettings, BucketSettings
from redrive.aws.s3.buckets import BucketOperations
from redrive.aws.s3.contents import Contents
from redrive.aws.s3.copying import Copying, CopySources
from redrive.aws.s3.errors import translated
from redrive.aws.s3.listing import ObjectListing
from redrive.aws.s3.multipart import Multipart
from redrive.aws.s3.notifications.destinations import Destinations
from redrive.aws.s3.notifications.notifying import DIALECT, Notifier
from redrive.aws.s3.notifications.operations import NotificationSettings
from redrive.aws.s3.object_tags import ObjectTags
from redrive.aws.s3.objects import ObjectOperations, Objects
from redrive.aws.s3.ports import BlobKeeper
from redrive.aws.s3.records import BUCKET, OBJECT, PART, UPLOAD
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.errors import RedriveError
from redrive.model.ids import id_text

_OF_NO_BUCKET: Final = frozenset({"CreateBucket", "ListBuckets"})


class S3:
    """S3 on an engine, and on blobs.

    Attributes:
        profile: Of the deliveries that notifications are.
        destinations: What they are pushed to.
    """

    def __init__(self, engine: Engine, blobs: BlobKeeper, destinations: Destinations) -> None:
        """Speak for this engine.

        Args:
            engine: Where buckets, objects and uploads are documents, and what brings notifications.
            blobs: Where the contents of objects are.
            destinations: Told of events.
        """
        self.profile = OwedCallProfile(DIALECT)
        self.destinations = destinations

        def new_id() -> str:
            return id_text(engine.runtime.message_id())

        contents = Contents(blobs, new_id)
        access = BucketAccess(engine.resources.documents)
        objects = Objects(engine, contents, Notifier(engine))
        sources = CopySources(objects, access)
        self.operations: Mapping[str, Verb] = operations_of(
            "s3",
            BucketOperations(engine, access, contents),
            BucketSettings(engine.resources.documents, access),
            AbsentSettings(access),
            NotificationSettings(engine.resources.documents, access, destinations, new_id),
            ObjectOperations(objects, access),
            ObjectTags(objects, access),
            ObjectListing(engine.resources.documents, access),
            Copying(objects, access, sources),
            Multipart(engine, objects, access, sources),
        )

    kinds: tuple[DocumentKind[Any], ...] = (BUCKET, OBJECT, UPLOAD, PART)
    """All that callers make through this service."""

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:  # noqa: ARG002 - see `Facade`
        """See `Facade.scopes`."""
        if "Bucket" in params and operation not in _OF_NO_BUCKET:
            return ()
        return [ResourceScope(f"arn:aws:s3:::{params.get('Bucket') or params.get('Prefix', '') + '*'}")]

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
