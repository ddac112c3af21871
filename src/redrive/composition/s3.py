"""Amazon S3: buckets and objects, whose contents lie where the setting `blob_store` says."""

from redrive.aws.gateway.rounds import Rounds
from redrive.aws.s3.documents.records import TO_DESTINATION
from redrive.aws.s3.facade import S3
from redrive.aws.s3.notifications.destinations import Destinations
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.endpoints.blob_store import BlobStore


def extension(core: Core) -> Extension:
    """Documents in the store, contents beside the blobs that are dead letters."""
    blobs = BlobStore(core.blob_store, core.ca_file)
    rounds = Rounds(core.secret, core.runtime.rng)
    s3 = S3(core.engine, blobs, Destinations(core.calls, rounds, is_open=core.settings.auth == "off"))
    return Extension(
        interface=Interface(
            services={"s3": s3},
        ),
        delivery=DeliveryParts(
            endpoints={TO_DESTINATION: s3.destinations},
        ),
        lifecycle=Lifecycle(
            close=(blobs.close,),
        ),
    )
