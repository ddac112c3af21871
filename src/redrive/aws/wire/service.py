"""A service as its published model describes it, read once and compiled operation by operation on first use; a codec."""

import gzip
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol

import orjson

from redrive.aws.wire.errors import COMMON, AwsError, ErrorKind, common
from redrive.aws.wire.profiles import Profile, profile_of
from redrive.aws.wire.shapes import Member, Raw, Shape, Shapes, Structure
from redrive.aws.wire.validation import Checks
from redrive.aws.wire.violations import Violation
from redrive.model.http import Request, Response

_NO_STRUCTURE: Final = Shape("Nothing", "structure")


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operation of one service. Compared and hashed by identity: a service holds each once."""

    service: "Service"  # Service it belongs to
    name: str  # The vendor's name
    input: Shape  # The structure of its parameters; without members where it takes none
    output: Shape | None  # The structure of its result; None where query answers have no result element
    events: Member | None  # The member of the result that is a row of events; None for nearly all
    result_wrapper: str  # The element around the result in query answers
    method: str  # HTTP method of a REST request
    path: str  # Path of a REST request, with `{names}`, and a query if that tells it from another operation
    status: int  # Status of a successful REST answer
    _violations: Callable[[Structure], Sequence[Violation]]

    def check(self, params: Structure) -> None:
        """Check parsed parameters against the model, as far as the service lets its model decide.

        Raises:
            AwsError: The service's own error for what it violates.
        """
        if violations := self._violations(params):
            raise self.service.profile.violated(violations)


class Service:
    """One AWS service: its operations, its errors and what its answers look like.

    Attributes:
        profile: What the model does not say.
        model: As botocore publishes it.
        api_version: The version of the API, which is also the version of query requests that give none.
        json_version: `1.0` or `1.1`; `1.0` for a service without JSON.
        query_compatible: Whether JSON errors carry the query code in `x-amzn-query-error`.
        xml_namespace: Of query answers.
    """

    def __init__(self, profile: Profile, model: Raw) -> None:
        metadata = model["metadata"]
        self.profile = profile
        self.api_version: str = metadata["apiVersion"]
        self.json_version: str = metadata.get("jsonVersion", "1.0")
        self.query_compatible: bool = "awsQueryCompatible" in metadata
        self.xml_namespace: str = metadata.get("xmlNamespace", profile.xml_namespace)
        self.model = model
        self._shapes = Shapes(profile.amended(model["shapes"]))
        self._checks = Checks(profile.checks, profile.spelling)
        self._operations: dict[str, Operation] = {}
        self._errors: dict[str, ErrorKind] = {}

    @staticmethod
    @cache
    def load(name: str) -> "Service":
        """Return the service botocore calls `name`, always the same object; raises KeyError if there is none."""
        return Service(profile_of(name), published(name, "service-2"))

    @property
    def routes(self) -> Mapping[str, tuple[str, str]]:
        """The method and path of each operation, by its name; paths have `{names}`."""
        operations = self.model["operations"].items()
        return {name: (raw["http"]["method"], raw["http"]["requestUri"]) for name, raw in operations}

    def error_members(self, code: str) -> frozenset[str]:
        """Return the names of an error's members in the model; none for an error of the framework."""
        return frozenset(self.model["shapes"].get(code, {}).get("members", ()))

    @property
    def operation_names(self) -> frozenset[str]:
        """The names of the service's operations."""
        return frozenset(self.model["operations"])

    def operation(self, name: str) -> Operation:
        """Return an operation, compiled; raises AwsError if the service has none of that name."""
        operation = self._operations.get(name)
        return self._compile(name) if operation is None else operation

    def error(self, code: str, message: str = "", query_message: str | None = None) -> AwsError:
        """Return one of the service's errors, with the code, status and fault its model or its profile gives it.

        Args:
            code: The error shape's name, or the code query protocols print.
            message: The text for JSON protocols, and for query unless `query_message` is given.
            query_message: The text for query protocols.

        Raises:
            KeyError: Neither the service nor the framework in front of it has such an error.
        """
        if not self._errors:
            self._errors = self._error_kinds()
        return self._errors[code].says(message, query_message)

    def _compile(self, name: str) -> Operation:
        """Make an operation of the model, and remember it; raises AwsError if the model has none of that name."""
        raw = self.model["operations"].get(name)
        if raw is None:
            raise self._unknown_operation(name)
        parameters = self._shapes[raw["input"]["shape"]] if "input" in raw else _NO_STRUCTURE
        output = self._shapes[raw["output"]["shape"]] if "output" in raw else None
        members = () if output is None else output.members.values()
        input_name = f"{name[0].lower()}{name[1:]}Input" if self.profile.names_input else ""
        operation = Operation(
            service=self,
            name=name,
            input=parameters,
            output=output,
            events=next((member for member in members if member.shape.is_event_stream), None),
            result_wrapper=raw.get("output", {}).get("resultWrapper", f"{name}Result"),
            method=raw["http"]["method"],
            path=raw["http"]["requestUri"],
            status=raw["http"].get("responseCode", 200),
            _violations=self._checks.violations(parameters, input_name),
        )
        self._operations[name] = operation
        return operation

    def _unknown_operation(self, name: str) -> AwsError:
        text = self.profile.unknown_action.format(action=name, version=self.api_version)
        return common("UnknownOperationException", query_message=text)

    def _error_kinds(self) -> dict[str, ErrorKind]:
        """Return every error by both its codes: the service's own first, shapes before query codes."""
        by_code: dict[str, ErrorKind] = {}
        for kinds in ((*self.profile.errors, *self._modelled_errors()), COMMON):
            for kind in kinds:
                by_code.setdefault(kind.code, kind)
            for kind in kinds:
                by_code.setdefault(kind.query_code, kind)
        return by_code

    def _modelled_errors(self) -> Iterator[ErrorKind]:
        for name, shape in self.model["shapes"].items():
            if shape.get("exception"):
                trait, fault = shape.get("error", {}), shape.get("fault", False)
                yield ErrorKind(
                    code=name,
                    query_code=trait.get("code", name),
                    status=trait.get("httpStatusCode", 500 if fault else 400),
                    sender=not fault,
                )


def published(service: str, file: str) -> Raw:
    """Read a file of the newest version of a service from botocore's data, without importing botocore (70 ms).

    Args:
        service: Botocore's name of it.
        file: Without its ending: `service-2`, `paginators-1`.

    Raises:
        ModuleNotFoundError: Botocore is not installed.
    """
    botocore = importlib.util.find_spec("botocore")
    if botocore is None or not botocore.submodule_search_locations:
        raise ModuleNotFoundError("botocore, whose service models Redrive reads, is not installed")
    models = Path(botocore.submodule_search_locations[0], "data", service).glob(f"*/{file}.json*")
    newest = max(models, key=lambda path: path.parent.name)
    content = newest.read_bytes()
    model: Raw = orjson.loads(gzip.decompress(content) if newest.suffix == ".gz" else content)
    return model


class Codec(Protocol):
    """One wire protocol. The recogniser picks it; the pipeline parses, calls and renders with it."""

    def parse(self, operation: Operation, request: Request) -> Structure:
        """Return the operation's parameters under the model's names, absent ones missing, unknown ones ignored.

        Raises:
            AwsError: The request cannot be read as the operation's input.
        """

    def render(self, operation: Operation, result: Structure, request_id: str) -> Response:
        """Return the answer to a call that succeeded.

        Raises:
            KeyError: `result` has a member the operation's output has not.
        """

    def render_error(self, service: Service, error: AwsError, request_id: str) -> Response:
        """Return the answer to a call that was refused."""


def answer_headers(request_id: str) -> Mapping[str, str]:
    """Return the headers every answer carries."""
    return {"x-amzn-RequestId": request_id}
