"""Google's and Amazon's push services, beyond what every kind of endpoint promises (`test_promise.py`)."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from redrive.endpoints.http import HttpEndpoint, WebhookAnswer
from redrive.endpoints.push.endpoint import PushEndpoint
from redrive.endpoints.push.web import AccessTokens
from redrive.model.attempt import AttemptResult, Reason
from tests.contracts.endpoints.push import (
    DEAD,
    DENIED,
    LARGE,
    SLOWER,
    TROUBLE,
    WRONG,
    amazon_push,
    google_push,
    pushing,
    real_now,
    verdict,
)
from tests.services.push_services import (
    ACCOUNT,
    Saying,
    Web,
    fcm_error,
    pem,
    service_account,
    signing_key,
)

LOGIN = {"client_id": "id", "client_secret": "secret"}


@pytest.fixture
def web() -> Iterator[Web]:
    with Web().serving() as web:
        yield web


class TestGoogle:
    async def test_a_push_sends_the_given_document(self, web: Web) -> None:
        body = {"message": {"token": "d1", "data": {"default": "hello"}}}
        async with pushing(web) as endpoint:
            attempt = await endpoint.push(google_push(body))
        assert attempt.delivered
        assert web.next().document == body

    @pytest.mark.parametrize(
        ("status", "code", "error_code", "means"),
        [
            (404, "NOT_FOUND", "UNREGISTERED", DEAD),
            (403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", DEAD),
            (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", WRONG),
            (403, "PERMISSION_DENIED", "", WRONG),
            (404, "NOT_FOUND", "", WRONG),
            (401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", DENIED),
            (429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", SLOWER),
            (500, "INTERNAL", "INTERNAL", TROUBLE),
            (503, "UNAVAILABLE", "UNAVAILABLE", TROUBLE),
        ],
    )
    async def test_each_error_of_google_has_its_result(
        self, web: Web, status: int, code: str, error_code: str, means: tuple[AttemptResult, Reason]
    ) -> None:
        web.say(status, fcm_error(status, code, error_code))
        async with pushing(web) as endpoint:
            attempt = await endpoint.push(google_push())
        assert (verdict(attempt), attempt.status) == (means, status)
        assert code in attempt.response

    @pytest.mark.parametrize("error", ["text", ["x"], 1, {"details": 1}, {"details": [1]}])
    async def test_unreadable_errors_of_google_are_refusals(self, web: Web, error: Any) -> None:
        web.say(400, {"error": error})
        async with pushing(web) as endpoint:
            assert verdict(await endpoint.push(google_push())) == WRONG

    async def test_one_login_serves_all_pushes_until_it_expires(self, web: Web) -> None:
        now = [real_now()]
        endpoint = PushEndpoint(lambda: now[0], random.Random(7), web.urls)
        await asyncio.gather(*(endpoint.push(google_push()) for _ in range(20)))
        assert len(web.logins) == 1
        now[0] -= 3_600_000  # an assertion of the past hour is accepted still
        assert (await endpoint.push(google_push())).delivered
        assert len(web.logins) == 1
        now[0] = real_now() + 3_299_000 + 1
        web.login_script = lambda: Saying(200, {"access_token": "later", "expires_in": 3599})
        web.accepted.add("later")
        assert (await endpoint.push(google_push())).delivered
        await endpoint.close()
        pushed = [web.next() for _ in range(22)]
        assert pushed[-1].headers["authorization"] == "Bearer later"

    async def test_a_token_that_was_taken_back_is_asked_for_again(self, web: Web) -> None:
        async with pushing(web) as endpoint:
            assert (await endpoint.push(google_push())).delivered
            web.accepted.clear()
            assert (await endpoint.push(google_push())).delivered
            assert len(web.logins) == 2
            web.login_script = lambda: Saying(200, {"access_token": "never accepted", "expires_in": 3599})
            web.accepted.clear()
            assert verdict(await endpoint.push(google_push())) == DENIED

    @pytest.mark.parametrize(
        ("saying", "means"),
        [
            (Saying(400, {"error": "invalid_grant"}), DENIED),
            (Saying(401, {"error": "invalid_client"}), DENIED),
            (Saying(403), DENIED),
            (Saying(404), WRONG),
            (Saying(429), SLOWER),
            (Saying(503), TROUBLE),
            (Saying(200, {}), TROUBLE),
            (Saying(200, {"access_token": 1}), TROUBLE),
            (Saying(200, {"access_token": "t", "expires_in": "soon"}), TROUBLE),
            (Saying(0), (AttemptResult.FAILED, Reason.CONNECTION)),
        ],
    )
    async def test_an_authority_that_gives_no_token(
        self, web: Web, saying: Saying, means: tuple[AttemptResult, Reason]
    ) -> None:
        web.login_script = lambda: saying
        async with pushing(web) as endpoint:
            assert verdict(await endpoint.push(google_push())) == means
            web.login_script = None
            assert (await endpoint.push(google_push())).delivered

    @pytest.mark.parametrize(
        "credential",
        [
            "AAAA-an-api-key",
            "[]",
            "{}",
            service_account(private_key="no"),
            service_account(private_key=pem(signing_key())),
        ],
    )
    async def test_an_unusable_service_account_is_denied_before_login(
        self, web: Web, credential: str
    ) -> None:
        async with pushing(web) as endpoint:
            attempt = await endpoint.push(google_push(credential=credential))
        assert (verdict(attempt), attempt.status, web.logins) == (DENIED, 0, [])

    async def test_an_account_that_is_not_known(self, web: Web) -> None:
        other = service_account(client_email="other@example.org")
        web.login_script = lambda: Saying(
            400, {"error": "invalid_grant", "error_description": "Invalid account"}
        )
        async with pushing(web) as endpoint:
            attempt = await endpoint.push(google_push(credential=other))
        assert (verdict(attempt), attempt.status) == (DENIED, 400)
        assert "Invalid account" in attempt.response

    async def test_the_login_assertion_names_the_account_and_its_key(self, web: Web) -> None:
        async with pushing(web) as endpoint:
            await endpoint.push(google_push())
        assertion = web.logins[0]["assertion"]
        assert jwt.get_unverified_header(assertion) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
        assert jwt.decode(assertion, options={"verify_signature": False})["iss"] == ACCOUNT


class TestLogins:
    async def test_a_late_refusal_of_an_expired_token_retries_with_the_current_token(self, web: Web) -> None:
        """Of many pushes under way with one token, the last refusals come when others have logged in anew."""
        http = HttpEndpoint(real_now, random.Random(7))
        tokens = AccessTokens(real_now, http)
        form = {"grant_type": "client_credentials", "scope": "messaging:push"} | LOGIN
        accepted, refused = WebhookAnswer(200, "", [], ()), WebhookAnswer(401, "", [], ())
        shown: list[str] = []

        async def push(refusal: asyncio.Event) -> None:
            async def post(token: str) -> WebhookAnswer:
                shown.append(token)
                if token != shown[0]:
                    return accepted
                await refusal.wait()
                return refused

            answer = await tokens.token("login", web.urls["adm_oauth"], lambda: form, post)
            assert answer == accepted

        soon, late = asyncio.Event(), asyncio.Event()
        soon.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(push(late))
            await push(soon)
            late.set()
        await http.close()
        assert (len(shown), len(set(shown)), len(web.logins)) == (4, 2, 2)


class TestAmazon:
    async def test_a_push_carries_the_document_and_amazons_headers(self, web: Web) -> None:
        web.say(200, {"registrationID": "d1"})
        async with pushing(web) as endpoint:
            attempt = await endpoint.push(amazon_push(token="d/1"))
        assert attempt.delivered
        assert attempt.identifiers == (("token", "d1"),)
        pushed = web.next()
        assert (pushed.token, pushed.document) == ("d/1", {"data": {"default": "hello"}})
        assert pushed.headers["x-amzn-type-version"] == "com.amazon.device.messaging.ADMMessage@1.0"
        assert pushed.headers["x-amzn-accept-type"] == "com.amazon.device.messaging.ADMSendResult@1.0"

    @pytest.mark.parametrize(
        ("status", "reason", "means"),
        [
            (400, "Unregistered", DEAD),
            (400, "InvalidRegistrationId", DEAD),
            (400, "InvalidData", WRONG),
            (401, "AccessTokenExpired", DENIED),
            (413, "MessageTooLarge", LARGE),
            (429, "MaxRateExceeded", SLOWER),
            (500, "", TROUBLE),
        ],
    )
    async def test_each_reason_of_amazon_has_its_result(
        self, web: Web, status: int, reason: str, means: tuple[AttemptResult, Reason]
    ) -> None:
        web.say(status, {"reason": reason})
        async with pushing(web) as endpoint:
            attempt = await endpoint.push(amazon_push())
        assert (verdict(attempt), attempt.status, attempt.identifiers) == (means, status, ())

    async def test_a_secret_that_is_wrong(self, web: Web) -> None:
        async with pushing(web) as endpoint:
            attempt = await endpoint.push(amazon_push(secret="wrong"))
        assert (verdict(attempt), attempt.status) == (DENIED, 401)
