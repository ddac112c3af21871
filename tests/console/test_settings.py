"""Settings and keys on pages: nothing secret is shown, but a new key's secret, once."""

import random
import re
from dataclasses import replace

from redrive.access.keys import new_access_key
from redrive.model.queue import DAY_MS
from redrive.settings import Settings, read_settings
from tests.console.services import Services, make_key
from tests.console.world import ROOM, ROOT, SCOPE, Visitor, visiting

KEYS = f"{ROOT}/settings/keys"


async def page(visitor: Visitor, path: str) -> str:
    return (await visitor.get(path)).body.decode()


async def test_settings_are_shown_with_their_origins_and_without_secrets() -> None:
    async with visiting(smtp_password="MARKED", smtp_host="mail.example.com", smtp_user="u") as visitor:
        shown = await page(visitor, f"{ROOT}/settings")
        assert "mail.example.com" in shown
        assert "MARKED" not in shown
        assert "program" in shown
        assert visitor.server.core.engine.runtime.node in shown
    settings, origins = read_settings({"port": 0}, {"REDRIVE_REGION": "eu-west-1"}, None)
    assert isinstance(settings, Settings)
    assert {origin.source for origin in origins} == {"flag", "environment (REDRIVE_REGION)", "default"}


async def test_a_key_is_made_disabled_and_deleted_and_its_secret_shown_once() -> None:
    async with visiting() as visitor:
        assert (await visitor.post(KEYS, {"account": "12"})).status == 400
        made = (await visitor.post(KEYS, {"account": SCOPE.account})).body.decode()
        (key_id,) = re.findall(r"AWS_ACCESS_KEY_ID=(\w+)", made)
        (secret,) = re.findall(r"AWS_SECRET_ACCESS_KEY=(\S+)</pre>", made)
        keyring = visitor.server.core.keyring
        kept = await keyring.find(key_id)
        assert kept is not None
        assert kept.secret == secret
        listed = await page(visitor, f"{KEYS}?")
        assert key_id in listed
        assert secret not in listed
        await visitor.post(f"{KEYS}/{key_id}", {"do": "disable"})
        assert await keyring.find(key_id) is None
        await visitor.post(f"{KEYS}/{key_id}", {"do": "enable"})
        assert await keyring.find(key_id) is not None
        assert "Deletion cannot be undone" in await page(visitor, f"{KEYS}/{key_id}")
        assert (await visitor.post(f"{KEYS}/{key_id}", {"do": "x"})).status == 400
        await visitor.post(f"{KEYS}/{key_id}", {"do": "delete"})
        assert await keyring.all() == []
        assert (await visitor.get(f"{KEYS}/{key_id}")).status == 404


async def test_a_users_key_keeps_iams_rules() -> None:
    async with visiting() as visitor:
        refused = await visitor.post(KEYS, {"account": SCOPE.account, "user": "ann"})
        assert refused.status == 400
        assert "ann cannot be found" in refused.body.decode()
        await Services(visitor).call("iam", "CreateUser", UserName="ann")
        made = (await visitor.post(KEYS, {"account": SCOPE.account, "user": "ann"})).body.decode()
        (key_id,) = re.findall(r"AWS_ACCESS_KEY_ID=(\w+)", made)
        await visitor.post(f"{KEYS}/{key_id}", {"do": "disable"})
        (kept,) = await visitor.server.core.keyring.all()
        assert (kept.user, kept.active) == ("ann", False)


async def test_visitors_see_their_accounts_keys_alone_and_keep_the_one_they_signed_in_with() -> None:
    async with visiting(auth="required") as visitor:
        keyring = visitor.server.core.keyring
        own = await make_key(keyring, "111111111111")
        other = await make_key(keyring, "222222222222")
        await visitor.post(f"{ROOT}/login", {"key": own.access_key_id, "secret": own.secret})
        listed = await page(visitor, KEYS)
        assert own.access_key_id in listed
        assert other.access_key_id not in listed
        assert (await visitor.post(f"{KEYS}/{other.access_key_id}", {"do": "delete"})).status == 404
        assert (await visitor.post(f"{KEYS}/{own.access_key_id}", {"do": "disable"})).status == 400
        made = (await visitor.post(KEYS, {"account": "222222222222"})).body.decode()
        (key_id,) = re.findall(r"AWS_ACCESS_KEY_ID=(\w+)", made)
        kept = await keyring.find(key_id)
        assert kept is not None
        assert kept.account == "111111111111"


async def test_a_key_shows_when_and_where_it_was_used_last_and_one_that_lies_idle_stands_out() -> None:
    async with visiting(auth="required", clock="simulated") as visitor:
        core, now = visitor.server.core, visitor.server.core.runtime.clock.now()
        own, idle, fresh = [new_access_key(SCOPE.account, now, random.Random(seed)) for seed in range(3)]
        for key in (own, replace(idle, created_at=now - 45 * DAY_MS), fresh):
            await core.keyring.add(key)
        await visitor.post(f"{ROOT}/login", {"key": own.access_key_id, "secret": own.secret})
        rows = (await page(visitor, KEYS)).split("<tr data-row>")
        shown = {key: next(row for row in rows if key.access_key_id in row) for key in (own, idle, fresh)}
        assert "console" in shown[own]
        assert "Never used in 45 days" in shown[idle]
        assert ">Never<" in shown[fresh]
        assert "Unused for" not in shown[fresh]
        core.keyring.uses.note(fresh.access_key_id, "sqs", "eu-west-1")
        assert "sqs · eu-west-1" in await page(visitor, f"{KEYS}?used")
        await core.keyring.uses.write()
        await visitor.server.time.advance(31 * DAY_MS)
        core.keyring.uses.note(idle.access_key_id, "sns", "eu-west-1")
        later = await page(visitor, f"{KEYS}?later")
        assert later.count("Unused for 31 days") == 1
        assert "Never used" not in later


async def test_without_signatures_uses_are_those_that_callers_claim() -> None:
    async with visiting() as visitor:
        core = visitor.server.core
        key = await make_key(core.keyring, SCOPE.account)
        scope = f"{key.access_key_id}/20261122/eu-west-1/sqs/aws4_request"
        headers = {"authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=x"}
        for _ in range(2):  # the first call of a key takes another way than all others
            core.keyring.uses.forget(key.access_key_id)
            await visitor.get("/?Action=ListQueues&Version=2012-11-05", **headers)
            assert {use.service for use in (await core.keyring.uses.of([key.access_key_id])).values()} == {
                "sqs"
            }
        assert "it is what a caller claims" in await page(visitor, KEYS)


async def test_an_encryption_key_shows_what_it_encrypts_and_is_switched() -> None:
    async with visiting() as visitor:
        services = Services(visitor)
        key = (await services.call("kms", "CreateKey", Description="of orders"))["KeyMetadata"]["KeyId"]
        await services.call("kms", "CreateAlias", AliasName="alias/orders", TargetKeyId=key)
        for name, master in (("by-alias", "alias/orders"), ("by-id", key), ("plain", "")):
            attributes = {"KmsMasterKeyId": master} if master else {}
            await services.call("sqs", "CreateQueue", QueueName=name, Attributes=attributes)
        path = f"{ROOM}/kms/{key}"
        assert ">orders</a>" in await page(visitor, f"{ROOM}/kms")
        shown = await page(visitor, path)
        assert "by-alias" in shown
        assert "by-id" in shown
        assert "plain" not in shown
        for do, state in (
            ("rotate", "each 365 days"),
            ("disable", "Disabled</span>"),
            ("enable", "Enabled</span>"),
        ):
            assert (await visitor.post(path, {"do": do})).status == 303
            assert state in await page(visitor, f"{path}?{do}")
        assert "by-alias" in await page(visitor, f"{path}/delete")
        assert (await visitor.post(f"{path}/delete", {"typed": "yes"})).status == 400
        assert (await visitor.post(f"{path}/delete", {"typed": key, "days": "3"})).status == 400
        assert (await visitor.post(f"{path}/delete", {"typed": key, "days": "7"})).status == 303
        assert "Pending deletion</span>" in await page(visitor, f"{path}?deleted")
        await visitor.post(path, {"do": "cancel"})
        assert "Disabled</span>" in await page(visitor, f"{path}?cancelled")
        assert (await visitor.post(path, {"do": "x"})).status == 400
        assert (await visitor.get(f"{ROOM}/kms/absent")).status == 404
