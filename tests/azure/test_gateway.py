"""Recognition of Azure's requests, and a service's refusals as answers."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from redrive.azure.arm.service import Arm, build_operations
from redrive.azure.entra import Entra
from redrive.azure.gateway import AzureGateway
from redrive.azure.handshake import Handshakes
from redrive.azure.wire.answers import AzureError, Detail
from redrive.azure.wire.bearer import TrustAllBearers
from redrive.model import errors
from redrive.model.http import Request, Response
from redrive.testing import VirtualClock
from tests.azure.stage import Stage


def request(path: str, method: str = "GET") -> Request:
    return Request(method, path, "", {"host": "localhost:4566"}, b"")


@pytest.fixture
def gateway(stage: Stage, clock: VirtualClock) -> AzureGateway:
    handshakes = Handshakes(stage.engine, {}, stage.tokens, stage.clock)
    arm = Arm(
        clock,
        TrustAllBearers(),
        build_operations(stage.engine, handshakes, lambda _: None),
        None,
        stage.engine.resources.documents,
    )
    entra = Entra(clock, TrustAllBearers(), None, stage.tokens)
    return AzureGateway(stage.engine.runtime, [arm, handshakes, entra])


@pytest.mark.parametrize(
    "path",
    [
        "/subscriptions",
        "/SUBSCRIPTIONS/1",
        "//subscriptions/1",
        "/%2Fsubscriptions%2F1/providers/Microsoft.EventGrid/eventSubscriptions",
        "/providers/Microsoft.EventGrid/topicTypes",
        "/tenants",
        "/metadata/endpoints",
        "/common/v2.0/.well-known/openid-configuration",
        "/11111111-1111-1111-1111-111111111111/oauth2/v2.0/token",
        "/eventsubscriptions/billing/validate",
    ],
)
async def test_requests_to_azure_paths_are_recognised(gateway: AzureGateway, path: str) -> None:
    assert gateway.handles(request(path))


@pytest.mark.parametrize(
    "path",
    [
        "/000000000000/queue",
        "/queue/queue",
        "/2015-03-31/functions/f/invocations",
        "/service/GraniteServiceVersion20100801/operation/PutMetricData",
        "/SimpleNotificationService-0123456789abcdef.pem",
    ],
)
async def test_requests_of_others(gateway: AzureGateway, path: str) -> None:
    assert not gateway.handles(request(path))


class Failing:
    """A service that fails as it is told."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def handles(self, path: str, host: str) -> bool:
        return True

    async def answer(self, request: Request) -> Response:
        raise self._failure


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (AzureError(413, "RequestEntityTooLarge", "too large"), 413, "RequestEntityTooLarge"),
        (errors.NotFound("gone"), 404, "ResourceNotFound"),
        (errors.AlreadyExists("there"), 409, "Conflict"),
        (errors.Conflict("changed"), 409, "Conflict"),
        (errors.TaskActive("running"), 409, "Conflict"),
        (errors.StoreUnavailable("away"), 503, "ServiceUnavailable"),
        (errors.RedriveError("other"), 500, "InternalServerError"),
    ],
)
async def test_each_failure_has_its_status_and_code(
    stage: Stage, failure: Exception, status: int, code: str
) -> None:
    gateway = AzureGateway(stage.engine.runtime, [Failing(failure)])
    answered = await gateway.answer(request("/"))
    assert (answered.status, orjson.loads(answered.body)["error"]["code"]) == (status, code)
    assert answered.headers["x-ms-request-id"]
    # What is permanent must not ask to be repeated; what is not, must.
    assert ("Retry-After" in answered.headers) is (status == 503)


async def test_several_things_that_are_wrong(stage: Stage) -> None:
    details = [Detail("First", "one"), Detail("Second", "two")]
    gateway = AzureGateway(stage.engine.runtime, [Failing(AzureError(400, "BadRequest", "both", details))])
    answered = await gateway.answer(request("/"))
    assert orjson.loads(answered.body) == {
        "error": {
            "code": "BadRequest",
            "message": "both",
            "details": [{"code": "First", "message": "one"}, {"code": "Second", "message": "two"}],
        }
    }


async def test_the_same_question_by_another_host(gateway: AzureGateway) -> None:
    async def issuer(**headers: str) -> Any:
        asked = request("/t/v2.0/.well-known/openid-configuration")
        asked.headers |= headers
        return orjson.loads((await gateway.answer(asked)).body)["issuer"]

    assert await issuer() == "http://localhost:4566/t/v2.0"
    assert await issuer(host="redrive.example") == "http://redrive.example/t/v2.0"


async def test_unknown_azure_paths_are_not_found(gateway: AzureGateway) -> None:
    paths: list[Callable[[], Request]] = [
        lambda: request("/subscriptions/1/providers/Microsoft.Compute/disks"),
        lambda: request("/metadata/endpoints", "POST"),
        lambda: request("/eventsubscriptions/billing/validate"),
    ]
    assert [(await gateway.answer(path())).status for path in paths] == [404, 404, 404]
