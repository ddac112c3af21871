"""The way in for Azure's services: which service a request is for, and its refusals as answers."""

from collections.abc import Awaitable, Sequence
from typing import Protocol

from redrive.azure.recognise import BODY_BYTES_MAX
from redrive.azure.wire.answers import AzureError, refusal, translate
from redrive.engine.ports import Runtime
from redrive.model.errors import RedriveError
from redrive.model.http import Request, RequestRecord, Response
from redrive.model.names import id_text


class AzureService(Protocol):
    """A part of Azure that answers for itself."""

    def handles(self, path: str, host: str) -> bool:
        """True if a request is for this service, by its path without the query and its host with the port, as sent."""
        ...

    def answer(self, request: Request) -> Awaitable[Response]:
        """Answer one request.

        Raises:
            AzureError: It is refused.
            RedriveError: The engine refuses, and the service has no better words for it.
        """
        ...


class AzureGateway:
    """Answers requests to Azure's services."""

    def __init__(self, runtime: Runtime, services: Sequence[AzureService]) -> None:
        self._runtime = runtime
        self._services = tuple(services)  # The first that handles a request has it

    def handles(self, request: Request) -> bool:
        """True if a request is for Azure at all."""
        return self._service(request) is not None

    def body_bytes_max(self, request: Request) -> int:  # noqa: ARG002 - the same for all rooms
        """The largest body of a request, by its head alone."""
        return BODY_BYTES_MAX

    async def answer(self, request: Request) -> Response:
        """Answer one request that this gateway handles."""
        service = self._service(request)
        record = request.record or RequestRecord()
        try:
            response = refusal(_nowhere(request)) if service is None else await service.answer(request)
        except AzureError as error:
            record.error = error.code
            response = refusal(error)
        except RedriveError as error:
            refused = translate(error)
            record.error = refused.code
            response = refusal(refused)
        response.headers = {"x-ms-request-id": id_text(self._runtime.message_id()), **response.headers}
        record.service = "eventgrid"
        record.request_id = response.headers["x-ms-request-id"]
        return response

    def _service(self, request: Request) -> AzureService | None:
        path, host = request.path, request.host
        return next((service for service in self._services if service.handles(path, host)), None)


def _nowhere(request: Request) -> AzureError:
    return AzureError(404, "NotFound", f"There is nothing at {request.path}.")
