"""AWS Lambda: functions that this server runs, where its settings allow it to run what callers bring."""

from collections.abc import Iterable, Mapping
from typing import Final

from redrive.aws.gateway.host import Host
from redrive.aws.kit.call import WHOLE_SERVICE, Call, ResourceScope
from redrive.aws.kit.service import AwsService, Outline
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.backlogs import DIALECT, TO_FUNCTION, TO_TARGET
from redrive.aws.lambda_.documents.errors import translated
from redrive.aws.lambda_.documents.layer_records import LAYER, LAYER_VERSION, read_layer
from redrive.aws.lambda_.documents.records import (
    ALIAS,
    CODE_PATH,
    EVENTS,
    FUNCTION,
    FUNCTION_URL,
    MAPPING,
    PROVISIONED,
    URLS,
    VERSION,
)
from redrive.aws.wire.profiles import MIB, REST_JSON, Profile, in_order
from redrive.aws.wire.shapes import Raw, Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DeliveryProfile

RUNTIMES_PATH: Final = "/_aws/lambda/runtimes"  # as LocalStack has it
#: Of mappings: of a new one, which has no id yet, and of any. Amazon asks about `*`.
_OF_MAPPINGS: Final = {"CreateEventSourceMapping": "", "ListEventSourceMappings": "*"}
#: Asked about by the operation, of the policy of a layer's version and the caller's own.
_OF_LAYERS: Final = frozenset(
    {
        *("AddLayerVersionPermission", "GetLayerVersion", "GetLayerVersionByArn", "GetLayerVersionPolicy"),
        "RemoveLayerVersionPermission",
    }
)


async def _scopes(_: Engine, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    prefix, function = f"arn:aws:lambda:{call.region}:{call.account}", params.get("FunctionName")
    if operation in _OF_LAYERS:
        return ()  # the operation asks itself: the policy of a layer's version counts, too
    if "LayerName" in params:
        return [ResourceScope(read_layer(call, params["LayerName"], params.get("VersionNumber")).arn)]
    if "UUID" in params:
        return [ResourceScope(f"{prefix}:event-source-mapping:{params['UUID']}")]
    if function is None:
        return () if "Resource" in params else [WHOLE_SERVICE]
    arn = names.arn_of(names.read(call, function).name)
    if operation in _OF_MAPPINGS:
        return [ResourceScope(f"{prefix}:event-source-mapping:{_OF_MAPPINGS[operation]}", (arn,))]
    # The other operations ask in `Lookup`: a function's own policy counts, too.
    return [ResourceScope(arn)] if operation == "CreateFunction" else ()


def _profiles(host: Host) -> Mapping[str, DeliveryProfile]:
    from redrive.aws.lambda_.invocations.profile import LambdaDeliveryProfile

    return {DIALECT: LambdaDeliveryProfile(host.store.notes)}


def _with_any_runtime(shapes: Raw) -> Raw:
    """The shapes without the list of runtimes: Lambda words that refusal by itself, and new ones come between two models.

    Lists keep it for their filters.
    """
    runtime = {name: value for name, value in shapes["Runtime"].items() if name != "enum"}
    known = {
        name: _with_member(shapes[name], "CompatibleRuntime", "KnownRuntime")
        for name in ("ListLayersRequest", "ListLayerVersionsRequest")
    }
    return {**shapes, **known, "Runtime": runtime, "KnownRuntime": shapes["Runtime"]}


def _with_member(structure: Raw, name: str, shape: str) -> Raw:
    """A structure of which a member has another shape."""
    members = {**structure["members"], name: {**structure["members"][name], "shape": shape}}
    return {**structure, "members": members}


#: Recorded; the models' are older or newer.
_TAGGABLE: Final = (
    r"arn:(aws[a-zA-Z-]*):lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:\d{12}:"
    r"(function:[a-zA-Z0-9-_]+(:(\$LATEST|[a-zA-Z0-9-_]+))?|layer:([a-zA-Z0-9-_]+)"
    r"|code-signing-config:csc-[a-z0-9]{17}"
    r"|event-source-mapping:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|capacity-provider:[a-zA-Z0-9-_]+)"
)
_LAYER_VERSION: Final = (
    r"(arn:(aws[a-zA-Z-]*)?:lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:\d{12}:"
    r"layer:[a-zA-Z0-9-_]+:[0-9]+)|(arn:[a-zA-Z0-9-]+:lambda:::awslayer:[a-zA-Z0-9-_]+)"
)


def _amended(shapes: Raw) -> Raw:
    """Lambda's patterns, enumerations and rules against null, as its refusals print them (recorded)."""
    nulls = {
        name: {**shapes[name], "namesNull": True}
        for name in ("ArchitecturesList", "LayerList", "AdditionalVersionWeights")
    }
    patterns = {
        "TaggableResource": {**shapes["TaggableResource"], "pattern": _TAGGABLE},
        "LayerVersionArn": {**shapes["LayerVersionArn"], "pattern": _LAYER_VERSION},
    }
    amended_shapes = {**shapes, **nulls, **patterns}
    return _with_any_runtime(in_order(RecursiveLoop=("Terminate", "Allow"))(amended_shapes))


SERVICE: Final = AwsService(
    profile=Profile(
        name="lambda",
        endpoint_prefix="lambda",
        api_version="2015-03-31",
        protocols=REST_JSON,
        amended=_amended,
        # Those of the paths in its model; a test holds that they are all there are.
        dates=frozenset(
            {
                *("2014-11-13", "2015-03-31", "2016-08-19", "2017-03-31", "2017-10-31", "2018-10-31"),
                *("2019-09-25", "2019-09-30", "2020-04-22", "2020-06-30", "2021-07-20", "2021-10-31"),
                *("2021-11-15", "2024-08-31", "2025-11-30", "2025-12-01", "2026-07-09"),
            }
        ),
        body_bytes_max=16 * MIB,  # a function's code; the front's own bound is lower than Lambda's
    ),
    title="Lambda",
    documents=(
        *(FUNCTION, VERSION, ALIAS, EVENTS, MAPPING),
        *(LAYER, LAYER_VERSION, FUNCTION_URL, PROVISIONED),
    ),
    translated=translated,
    scopes=_scopes,
    outline=Outline(
        paths=(CODE_PATH, RUNTIMES_PATH),
        hosted=URLS,
        endpoints=("lambda", TO_FUNCTION, TO_TARGET),
        profiles=_profiles,
        wakes=(FUNCTION, MAPPING),
    ),
    switch="started with --functions on",
)
