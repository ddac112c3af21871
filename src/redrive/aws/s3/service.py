"""Amazon S3: buckets and objects, as much of it as copying files, code of functions and templates need."""

from collections.abc import Iterable, Sequence
from typing import Final

from redrive.aws.gateway.owed_calls import owed_profiles
from redrive.aws.kit.call import Call, ResourceScope
from redrive.aws.kit.service import AwsService, Outline
from redrive.aws.s3.documents.errors import translated
from redrive.aws.s3.documents.records import BUCKET, DIALECT, OBJECT, PART, TO_DESTINATION, UPLOAD
from redrive.aws.wire.errors import AwsError, ErrorKind
from redrive.aws.wire.profiles import MIB, Profile
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.violations import Violation, ViolationKind
from redrive.engine.engine import Engine

_OF_NO_BUCKET: Final = frozenset({"CreateBucket", "ListBuckets"})
_ACTIONS: Final = {"ListBuckets": "ListAllMyBuckets"}


async def _scopes(_: Engine, _call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    if "Bucket" in params and operation not in _OF_NO_BUCKET:
        return ()
    return [ResourceScope(f"arn:aws:s3:::{params.get('Bucket') or params.get('Prefix', '') + '*'}")]


def _violated(violations: Sequence[Violation]) -> AwsError:
    """S3's answer to a request without a required element or header."""
    missing = ", ".join(violation.path for violation in violations)
    return AwsError("MalformedXML", f"The request lacks what it has to have: {missing}")


SERVICE: Final = AwsService(
    profile=Profile(
        name="s3",
        endpoint_prefix="s3",
        api_version="2006-03-01",
        protocols=frozenset({"rest-xml"}),
        xml_namespace="http://s3.amazonaws.com/doc/2006-03-01/",
        checks=frozenset({ViolationKind.REQUIRED}),  # S3 words every other violation by itself
        violated=_violated,
        errors=(ErrorKind("AccessDenied", "AccessDenied", 403),),
        denied="AccessDenied",
        body_bytes_max=16 * MIB,  # as the front's own bound
        keeps_coding=True,
    ),
    title="S3",
    documents=(BUCKET, OBJECT, UPLOAD, PART),
    translated=translated,
    scopes=_scopes,
    outline=Outline(endpoints=(TO_DESTINATION,), profiles=owed_profiles(DIALECT)),
    action=lambda _, operation: f"s3:{_ACTIONS.get(operation, operation)}",
)
