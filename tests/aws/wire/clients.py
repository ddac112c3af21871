"""Botocore as the client: its serialisers make the requests, its parsers read the answers."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from botocore.awsrequest import HeadersDict
from botocore.model import ServiceModel
from botocore.parsers import create_parser
from botocore.serialize import create_serializer

from redrive.aws.sqs.query_names import with_query_names
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Member, Shape, Structure, Value
from redrive.model.http import Request, Response

_DEPTH_MAX = 5  # where sampling stops following shapes that contain themselves


class Client:
    """One service over one protocol, as an SDK speaks it."""

    def __init__(self, name: str, protocol: str) -> None:
        self.service = Service.load(name)
        self._model = ServiceModel(_described(self.service, protocol), name)
        self._serializer = create_serializer(protocol, include_validation=False)
        self._parser = create_parser(protocol)

    @property
    def operations(self) -> list[str]:
        """The names of the operations that answer in one piece; event streams are another protocol."""
        names = sorted(self.service.operation_names)
        return [name for name in names if not self._model.operation_model(name).has_event_stream_output]

    def request(self, operation: str, params: Structure) -> Request:
        """Return the request an SDK would send."""
        shape = self.service.operation(operation).input
        in_path = {name: "x" for name, member in shape.members.items() if member.location == "uri"}
        given = {**in_path, **params}
        made = self._serializer.serialize_to_request(given, self._model.operation_model(operation))
        body = made["body"]
        if isinstance(body, dict):
            body = urlencode(body, doseq=True).encode()
        headers = {"host": "localhost:4566", **{key.lower(): text for key, text in made["headers"].items()}}
        path, _, fixed = made["url_path"].partition("?")
        query = "&".join(filter(None, (fixed, urlencode(made["query_string"] or {}, doseq=True))))
        return Request(made["method"], path, query, headers, body)

    def answer(self, operation: str, response: Response) -> dict[str, Any]:
        """Return what an SDK would hand to its caller; `Error` in it where the call failed."""
        raw = {
            "status_code": response.status,
            "headers": HeadersDict(response.headers),
            "body": response.body,
        }
        shape = self._model.operation_model(operation).output_shape
        answer: dict[str, Any] = self._parser.parse(raw, shape)
        answer["ResponseMetadata"].pop("HTTPHeaders")
        payload = self.service.operation(operation).output and shape and shape.serialization.get("payload")
        if payload and isinstance(answer.get(payload), str):  # a whole body, which this parser takes for text
            answer[payload] = answer[payload].encode()
        return answer


def moment(timestamp_ms: int) -> datetime:
    """Return a timestamp as SDKs have it."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)


_UNIONS = frozenset({"CloudConnectorConfiguration"})  # of whose members there is one at a time


def sample(shape: Shape, *, sdk: bool, depth: int = 0) -> Value:
    """Return a value with every member and two of everything; for an SDK with its timestamps."""
    match shape.type:
        case "structure":
            members = list(shape.members.items())
            return {
                name: _in_place(member, sdk=sdk, depth=depth + 1, whole=name == shape.payload)
                for name, member in (members[:1] if shape.name in _UNIONS else members)
                if not _opens(member.shape) or (depth < _DEPTH_MAX and not _is_bare(member.shape))
            }
        case "list":
            return [sample(shape.element.shape, sdk=sdk, depth=depth + 1)] * 2
        case "map":
            keys = list(shape.key.shape.enum[:2]) or ["one & two", "drei"]
            return {key: sample(shape.value.shape, sdk=sdk, depth=depth + 1) for key in keys}
        case "timestamp":
            return moment(1_700_000_000_500) if sdk else 1_700_000_000_500
        case _:
            return _scalar(shape)


def _in_place(member: Member, *, sdk: bool, depth: int, whole: bool) -> Value:
    """Return a member's value; one that no line break may stand in where it is part of a head."""
    if whole and member.shape.type == "blob":
        return b"payload"
    if member.location == "statusCode":
        return 200
    if member.location in {"uri", "header"} and member.shape.type == "string":
        return f"{member.shape.name}:1"
    return sample(member.shape, sdk=sdk, depth=depth)


def _opens(shape: Shape) -> bool:
    return shape.type in {"structure", "list", "map"}


def _is_bare(shape: Shape) -> bool:
    """True if the shape has no members: a query request cannot say that such a structure is there."""
    return shape.type == "structure" and not shape.members


def _scalar(shape: Shape) -> Value:
    samples = {
        "integer": -7,
        "long": 2**40,
        "float": 1.5,
        "double": -0.25,
        "boolean": True,
        "blob": b"\x00\xffblob",
    }
    return samples.get(shape.type, f'{shape.name} <&> "ä\U0001f600"\r\n')


def _described(service: Service, protocol: str) -> dict[str, Any]:
    """Return the service's model in one of its protocols; SQS's query model is restored from its wire names."""
    model = dict(service.model)
    model["metadata"] = {**model["metadata"], "protocol": protocol, "protocols": [protocol]}
    if protocol == "query" and service.profile.name in {"sqs", "cloudwatch"}:
        model["metadata"]["xmlNamespace"] = service.xml_namespace
        model["operations"] = {name: _wrapped(name, raw) for name, raw in model["operations"].items()}
    if protocol == "query" and service.profile.name == "sqs":
        model["shapes"] = _located(with_query_names(model["shapes"]))
    return model


def _wrapped(name: str, operation: dict[str, Any]) -> dict[str, Any]:
    if "output" not in operation:
        return operation
    return {**operation, "output": {**operation["output"], "resultWrapper": f"{name}Result"}}


def _located(node: Any) -> Any:
    """Return the model with `queryName` under the name botocore's query serialiser reads."""
    if isinstance(node, dict):
        return {"locationName" if key == "queryName" else key: _located(item) for key, item in node.items()}
    return [_located(item) for item in node] if isinstance(node, list) else node
