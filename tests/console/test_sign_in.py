"""Signing in: by an access key, or by a link of the last minute."""

import re

from redrive.access.keys import chosen_access_key
from redrive.console.session import ENDED, LINK, SESSION, token_of
from redrive.engine.operations import SCOPES_MAX
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Topic
from redrive.runtime.machine import SystemClock
from tests.console.world import ROOM, ROOT, SCOPE, Visitor, make_world, visiting

SECRET = "a-secret-of-forty-characters,or-nearly-so"


async def with_key(visitor: Visitor, account: str = "000000000000") -> None:
    await visitor.server.core.keyring.add(chosen_access_key(account, f"AKIA{account}", SECRET, 0))


async def test_pages_are_shown_after_signing_in_alone() -> None:
    async with visiting(auth="required") as visitor:
        await make_world(visitor)
        await with_key(visitor)
        led = await visitor.get(f"{ROOM}/dead-letters")
        assert (led.status, led.headers["Location"]) == (303, f"{ROOT}/login")
        assert (await visitor.get(f"{ROOT}/login")).status == 200
        wrong = await visitor.post(f"{ROOT}/login", {"key": "AKIA000000000000", "secret": "other"})
        assert wrong.status == 403
        assert not visitor.cookie
        right = await visitor.post(f"{ROOT}/login", {"key": "AKIA000000000000", "secret": SECRET})
        assert right.status == 303
        for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
            assert word in right.headers["Set-Cookie"]
        assert SECRET not in right.headers["Set-Cookie"]
        assert (await visitor.get(f"{ROOM}/dead-letters")).status == 200
        await visitor.post(f"{ROOT}/logout", {})
        assert (await visitor.get(f"{ROOM}/dead-letters")).status == 303


async def test_a_session_that_was_signed_out_of_is_over_and_no_other() -> None:
    async with visiting(auth="required") as visitor:
        await with_key(visitor)
        cookies = []
        for _ in range(2):
            await visitor.post(f"{ROOT}/login", {"key": "AKIA000000000000", "secret": SECRET})
            cookies.append(visitor.cookie)
        assert cookies[0] != cookies[1]
        visitor.cookie = cookies[0]
        await visitor.post(f"{ROOT}/logout", {})
        # The last letter of a signature has two bits that nobody looks at: three other spellings of the same cookie.
        for cookie in (cookies[0], *(cookies[0][:-1] + letter for letter in "AEIMQUYcgkosw048")):
            visitor.cookie = cookie
            assert (await visitor.get(f"{ROOT}/")).status == 303
        visitor.cookie = cookies[1]
        assert (await visitor.get(f"{ROOT}/")).status == 200
        ended = await visitor.server.core.engine.resources.documents.get(ENDED, "AKIA000000000000")
        assert len(ended or ()) == 1


async def test_sessions_that_were_signed_out_of_take_little_room() -> None:
    async with visiting(auth="required") as visitor:
        await with_key(visitor)
        for _ in range(300):
            await visitor.post(f"{ROOT}/login", {"key": "AKIA000000000000", "secret": SECRET})
            await visitor.post(f"{ROOT}/logout", {})
        ended = await visitor.server.core.engine.resources.documents.get(ENDED, "AKIA000000000000")
        assert len(ended or ()) == 256


async def test_another_account_sees_nothing_of_this() -> None:
    async with visiting(auth="required") as visitor:
        await make_world(visitor)
        await with_key(visitor, "111111111111")
        await visitor.post(f"{ROOT}/login", {"key": "AKIA111111111111", "secret": SECRET})
        assert (await visitor.get(f"{ROOM}/dead-letters")).status == 404
        assert SCOPE.account.encode() not in (await visitor.get(f"{ROOT}/")).body
        assert (await visitor.post(f"{ROOM}/queues/orders/send", {"body": "x"})).status == 404


async def test_an_account_sees_its_own_places_behind_any_number_of_others() -> None:
    async with visiting(auth="required") as visitor:
        resources = visitor.server.core.engine.resources
        for number in range(SCOPES_MAX):
            await resources.queues.create(Queue(0, SCOPE._replace(account=f"{number:012}", name="q")))
        await with_key(visitor, "999999999999")
        for region in ("eu-west-1", "us-east-1"):
            name = ResourceName("999999999999", region, "mine")
            await resources.topics.create(Topic(0, name, "sns"))
        await visitor.post(f"{ROOT}/login", {"key": "AKIA999999999999", "secret": SECRET})
        page = (await visitor.get(f"{ROOT}/")).body.decode()
        assert "999999999999 · eu-west-1" in page
        assert "999999999999 · us-east-1" in page
        assert not re.search(r"0000000000\d\d", page)  # also in no link to what is behind them
        assert "There may be more" in page


async def test_a_link_signs_in_once_it_is_posted_and_only_for_a_minute() -> None:
    soon = SystemClock().now() // 1000 + 600
    async with visiting(auth="required") as visitor:
        await make_world(visitor)
        await with_key(visitor)
        for token in (
            token_of("AKIA000000000000", SECRET, LINK, soon - 700),  # over
            token_of("AKIA000000000000", SECRET, SESSION, soon),  # made for something else
            token_of("AKIA000000000000", "another secret", LINK, soon),
            token_of("AKIA999999999999", SECRET, LINK, soon),
            "no token",
        ):
            assert (await visitor.post(f"{ROOT}/login", {"token": token})).status == 403
        good = token_of("AKIA000000000000", SECRET, LINK, soon)
        assert (await visitor.post(f"{ROOT}/login", {"token": good})).status == 303
        assert (await visitor.get(f"{ROOM}/queues")).status == 200


async def test_a_removed_key_ends_its_sessions() -> None:
    async with visiting(auth="required") as visitor:
        await make_world(visitor)
        await with_key(visitor)
        await visitor.post(f"{ROOT}/login", {"key": "AKIA000000000000", "secret": SECRET})
        await visitor.server.core.keyring.remove("AKIA000000000000")
        assert (await visitor.get(f"{ROOM}/queues")).status == 303


async def test_guessing_comes_to_an_end() -> None:
    async with visiting(auth="required") as visitor:
        await with_key(visitor)
        for _ in range(10):
            assert (await visitor.post(f"{ROOT}/login", {"key": "AKIA0", "secret": "x"})).status == 403
        right = {"key": "AKIA000000000000", "secret": SECRET}
        assert (await visitor.post(f"{ROOT}/login", right)).status == 429


async def test_a_secure_cookie_belongs_to_this_host_alone() -> None:
    public = "https://ops.example.com"
    async with visiting(auth="required", public_url=public) as visitor:
        await make_world(visitor)
        await with_key(visitor)
        form = {"key": "AKIA000000000000", "secret": SECRET}
        answer = await visitor.post(f"{ROOT}/login", form, host="ops.example.com")
        assert answer.headers["Set-Cookie"].startswith("__Host-redrive=")
        assert "Secure" in answer.headers["Set-Cookie"]
        assert (await visitor.get(f"{ROOM}/queues", host="ops.example.com")).status == 200
