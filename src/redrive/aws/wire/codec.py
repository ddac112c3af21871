"""The interface of a wire protocol's codec."""

from collections.abc import Mapping
from typing import Protocol

from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.service import Operation, Service
from redrive.aws.wire.shapes import Structure
from redrive.model.http import Request, Response


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
