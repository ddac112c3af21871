"""Services of one JSON protocol: requests that were right once, and a world that they are asked of."""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson
from hypothesis import strategies as st

from redrive.model.http import Request, Response
from tests.fuzz.spoiling import spoilt
from tests.fuzz.watched import Watched

Asked = tuple[str, bytes]
"""An operation, and its parameters."""


class JsonWorld(Watched):
    """A service of the protocol `json`, on a store in memory.

    Attributes:
        target: What stands before an operation's name in `X-Amz-Target`.
    """

    target: ClassVar[str]

    async def ask(self, operation: str, params: Any) -> Response:
        """Ask for an operation, with what only the server knows in its place."""
        body = orjson.dumps(params) if not isinstance(params, bytes) else params
        for name, value in self.known.items():
            body = body.replace(name.encode(), value.encode())
        headers = {
            "x-amz-target": f"{self.target}.{operation}",
            "content-type": "application/x-amz-json-1.1",
            "host": "localhost",
        }
        return await self.answer(Request("POST", "/", "", headers, body))

    async def call(self, operation: str, **params: Any) -> Any:
        """The answer to a call that is carried out."""
        response = await self.ask(operation, params)
        assert response.status == 200, response.body
        return orjson.loads(response.body or b"{}")


@st.composite
def requests(draw: st.DrawFn, right: Mapping[str, Mapping[str, Any]]) -> Asked:
    """An operation of those that have a right request, and its parameters, of which up to two are spoilt."""
    operation = draw(st.sampled_from(sorted(right)))
    params: Any = copy.deepcopy(right[operation])
    for _ in range(draw(st.integers(0, 2))):
        params = spoilt(draw, params)
    return operation, json.dumps(params).encode()


async def ask_each(world: JsonWorld, asked: Sequence[Asked]) -> None:
    """Ask one after the other: nothing may fail, and a refusal may change nothing."""
    await world.open()
    try:
        for operation, body in asked:
            before = world.everything()
            response = await world.ask(operation, body)
            assert response.status < 500, (operation, body, response.body)
            orjson.loads(response.body or b"{}")
            if response.status >= 400:
                assert world.everything() == before, (operation, body, response.body)
    finally:
        await world.close()
