"""Amazon S3: buckets and objects, whose contents lie where the setting `blob_store` says."""

from redrive.aws.s3.facade import S3
from redrive.composition.core import Core
from redrive.composition.extension import Extension, Interface, Lifecycle
from redrive.endpoints.blob_store import BlobStore


def extension(core: Core) -> Extension:
    """Documents in the store, contents beside the blobs that are dead letters."""
    blobs = BlobStore(core.blob_store, core.ca_file)
    return Extension(
        interface=Interface(
            services={"s3": S3(core.engine, blobs)},
            kinds=S3.kinds,
        ),
        lifecycle=Lifecycle(
            close=(blobs.close,),
        ),
    )
