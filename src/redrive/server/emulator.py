"""Routes that tests and tools of LocalStack ask for, where this server has what they are about."""

from collections.abc import Mapping
from typing import Final

from redrive import __version__
from redrive.aws.gateway.authentication import Authentication
from redrive.aws.wire.errors import AwsError
from redrive.model.errors import StoreUnavailable
from redrive.model.http import Request, Response
from redrive.server.control import Reset, Route
from redrive.server.init_scripts import STAGES, InitScripts
from redrive.server.owned import SIGNING_NAME, json_answer, method_of

PREFIXES: Final = ("/_localstack/", "/_aws/")
_OFFERED: Final = (
    "/_localstack/health, /_localstack/init, /_localstack/state/reset (with --allow-reset),"
    " /_aws/sqs/messages, /_aws/sns/subscription-tokens (with --allow-reset), /_aws/sns/sms-messages (with --sms-gateway"
    " memory) and /_aws/lambda/runtimes (where functions run)"
)
_RESET: Final = "/_localstack/state/reset"
_INIT: Final = "/_localstack/init"


class EmulatorRoutes:
    """Answers what LocalStack would, besides the routes that services have themselves."""

    def __init__(
        self,
        services: Mapping[str, str],
        reset: Reset | None,
        scripts: InitScripts,
        authentication: Authentication,
    ) -> None:
        """Answer for a server.

        Args:
            services: The services offered and their state.
            reset: Removes everything, where that may be asked for over the wire.
            scripts: Those of the init folder.
            authentication: Tells who asks for a reset.
        """
        self._services = services
        self._reset = reset
        self._scripts = scripts
        self._authentication = authentication
        self._routes: Mapping[tuple[str, str], Route] = {
            ("GET", "/_localstack/health"): self._answer_health,
            ("GET", _INIT): self._answer_init,
            ("POST", _RESET): self._answer_reset,
        }

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        path = _INIT if request.path.startswith(f"{_INIT}/") else request.path
        route = self._routes.get((method_of(request), path))
        if route is None:
            return _not_offered(request)
        try:
            return await route(request)
        except AwsError as error:
            return json_answer(error.status, {"message": error.message})
        except StoreUnavailable as error:
            return json_answer(503, {"message": str(error)})

    async def _answer_health(self, _: Request) -> Response:
        return json_answer(200, {"services": self._services, "edition": "redrive", "version": __version__})

    async def _answer_init(self, request: Request) -> Response:
        stage = request.path.removeprefix(_INIT).removeprefix("/").upper()
        if stage and stage not in STAGES:
            return _not_offered(request)
        await self._authentication.caller(request, SIGNING_NAME)  # the names of the operator's files
        return json_answer(200, self._scripts.stage(stage) if stage else self._scripts.stages())

    async def _answer_reset(self, request: Request) -> Response:
        if self._reset is None:
            needed = "a server that was started with --allow-reset has it"
            return json_answer(404, {"message": f"no route POST {_RESET}; {needed}"})
        await self._authentication.caller(request, SIGNING_NAME)
        await self._reset()
        return json_answer(200, {"status": "ok"})


def _not_offered(request: Request) -> Response:
    message = f"no route {request.method} {request.path}; of LocalStack's own routes Redrive has {_OFFERED}"
    return json_answer(404, {"message": message})
