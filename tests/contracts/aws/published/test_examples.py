"""Every published example is answered, or refused with an error that the service's model or every service has."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import botocore
import pytest
from botocore.exceptions import ClientError

from redrive.aws.services import FOLDERS
from tests.contracts.aws.published.conftest import Published

#: Errors that models leave out: those of every service, and those that S3 describes in prose alone.
_COMMON: Final = frozenset(
    {"ValidationException", "ValidationError", "AccessDeniedException", "InvalidInput"}
)
_UNMODELLED: Final = {
    "s3": frozenset(
        {
            *("NoSuchBucket", "NoSuchKey", "NoSuchUpload", "NoSuchBucketPolicy", "NoSuchTagSet", "404"),
            *("NoSuchCORSConfiguration", "NoSuchLifecycleConfiguration", "NoSuchWebsiteConfiguration"),
            *(
                "ReplicationConfigurationNotFoundError",
                "NotImplemented",
                "InvalidArgument",
                "MalformedPolicy",
            ),
        }
    )
}


def _examples(service: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The operations of the newest published examples of a service, and their parameters."""
    files = Path(botocore.__file__).parent.joinpath("data", service).glob("*/examples-1.json*")
    newest = max(files, key=lambda path: path.parent.name, default=None)
    if newest is None:
        return
    content = newest.read_bytes()
    document = json.loads(gzip.decompress(content) if newest.suffix == ".gz" else content)
    for operation, examples in document["examples"].items():
        for example in examples:
            params = example.get("input") or {}
            if params.get("Bucket", "named"):  # clients refuse one without a name themselves
                yield operation, params


@pytest.mark.parametrize("service", [name for name in FOLDERS if any(_examples(name))])
def test_every_example_is_answered_or_refused_by_name(published: Published, service: str) -> None:
    published.server.reset()
    model = published.of(service).meta.service_model
    for operation, params in _examples(service):
        try:
            published.call(service, operation, **params)
        except ClientError as refusal:
            error, shapes = refusal.response["Error"], model.operation_model(operation).error_shapes
            if error["Message"] == f"Redrive does not offer the operation {service} {operation}.":
                continue
            modelled = {code for shape in shapes for code in (shape.name, shape.error_code)}
            assert error["Code"] in _COMMON | modelled | _UNMODELLED.get(service, frozenset()), operation
