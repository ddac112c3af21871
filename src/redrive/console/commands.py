"""Commands to copy: whole for this server, so that they never act on another one with things of the same names.

A key is never part of one: where visitors sign in, a comment says whose key is needed.
"""

import shlex

from redrive.access.keys import is_account
from redrive.console.visit import Visit

_NOBODYS: str = "000000000000"  # the account of who sends no key


def redrive_command(visit: Visit, *words: str) -> str:
    """A command of `redrive`, for the account and region of the page: `redrive dlq redrive …`."""
    scope = visit.scope
    where = ["--url", visit.host]
    if is_account(scope.account):
        where += ["--region", scope.region]
    else:
        where += ["--azure-subscription", scope.account, "--resource-group", scope.region]
    return _as(visit, ["redrive", *words, *where])


def aws_command(visit: Visit, *words: str) -> str:
    """A command of the AWS CLI, for the account and region of the page, if it is of one.

    Without credentials the AWS CLI asks nobody, so that it always has some.
    """
    region = ["--region", visit.args["region"]] if "region" in visit.args else []
    return _as(visit, ["aws", "--endpoint-url", visit.host, *region, *words], needs_key=True)


def _as(visit: Visit, words: list[str], *, needs_key: bool = False) -> str:
    """A command line, with the credentials by which it runs as the page's account."""
    command = " ".join(shlex.quote(word) for word in words)
    account = visit.args.get("account", _NOBODYS)
    if visit.session.key_id:
        return f"{command}  # with an access key of account {account}"
    if is_account(account) and (needs_key or account != _NOBODYS):
        return f"AWS_ACCESS_KEY_ID={account} AWS_SECRET_ACCESS_KEY=any {command}"
    return command
