"""Text messages that are kept in memory in place of a message centre, for tests."""

from collections import deque
from typing import Final, NamedTuple

from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason

TEXTS_MAX: Final = 10_000  # the oldest go first


class SentText(NamedTuple):
    """A text message."""

    account: str  # The sender's
    region: str  # The sender's
    number: str  # The telephone's
    message_id: str  # As `Publish` answered it
    message: str  # The text


class SmsOutbox:
    """`redrive.engine.ports.Endpoint`: takes what an `SmsEndpoint` takes, and keeps it until a reset or its end."""

    def __init__(self) -> None:
        self.texts: deque[SentText] = deque(maxlen=TEXTS_MAX)

    async def push(self, push_request: PushRequest) -> Attempt:
        """Keep the text in memory."""
        headers = push_request.headers
        message_id = headers["Message-ID"].partition(".")[0]
        text = push_request.body.decode()
        self.texts.append(
            SentText(headers["Account"], headers["Region"], push_request.endpoint, message_id, text)
        )
        return Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 0, "Kept in memory")

    def of(self, account: str, region: str, number: str | None) -> list[SentText]:
        """The texts of a sender, the oldest first, to one number or to all."""
        sent = [text for text in self.texts if (text.account, text.region) == (account, region)]
        return [text for text in sent if number in (None, text.number)]

    async def clear(self) -> None:
        """Forget all of them."""
        self.texts.clear()

    async def close(self) -> None:
        """Nothing is held."""
