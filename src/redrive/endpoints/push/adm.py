"""Amazon Device Messaging: messages posted as an application with an id and a secret."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from redrive.endpoints.http import HttpEndpoint
from redrive.endpoints.http_push import WebhookAnswer
from redrive.endpoints.push import verdicts
from redrive.endpoints.push.login import AccessTokens
from redrive.endpoints.verdicts import Verdict
from redrive.engine.ports import PushRequest

_JSON: Final = "application/json"
_TYPES: Final = {
    "X-Amzn-Type-Version": "com.amazon.device.messaging.ADMMessage@1.0",
    "X-Amzn-Accept-Type": "com.amazon.device.messaging.ADMSendResult@1.0",
    "Accept": _JSON,
}


class Adm:
    """Posts messages; see `push.PushEndpoint` for what a request has.

    Args:
        http: Asks by HTTP.
        tokens: Access tokens.
        urls: The service's and its authority's, by what they are called.
    """

    def __init__(self, http: HttpEndpoint, tokens: AccessTokens, urls: Mapping[str, str]) -> None:
        self._http = http
        self._tokens = tokens
        self._url = urls["adm"]
        self._authority = urls["adm_oauth"]

    async def send(self, push_request: PushRequest) -> Verdict:
        """Post it; the identifier `token` of a success is the device's token from now on.

        Raises:
            Refused: The application gets no access token.
        """
        url = f"{self._url}/messaging/registrations/{quote(push_request.endpoint, safe='')}/messages"

        async def post(token: str) -> WebhookAnswer | Verdict:
            headers = {"Authorization": f"Bearer {token}", **_TYPES}
            return await self._http.ask(
                PushRequest(url, push_request.body, _JSON, headers, push_request.timeout_ms)
            )

        login = (push_request.headers["principal"], push_request.headers["credential"])
        answer = await self._tokens.token(login, self._authority, lambda: _form(*login), post)
        if isinstance(answer, Verdict):
            return answer
        token = verdicts.word_in(answer.text, "registrationID")
        identifiers = (("token", token),) if token else ()
        return replace(verdicts.of_adm(answer.status, answer.text), identifiers=identifiers)


def _form(client_id: str, secret: str) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "scope": "messaging:push",
        "client_id": client_id,
        "client_secret": secret,
    }
