"""Signing in and out."""

from redrive.console.session import ConsoleSessions
from redrive.console.visit import Page, Redirect, Visit

_TOO_MANY = 429
_DENIED = 403
_LOCAL = ("127.0.0.1", "::1")


async def page(visit: Visit) -> Page:  # noqa: ARG001 - of every page
    """The form."""
    return Page("login.html", {"notice": "", "key": ""})


async def sign_in(visit: Visit, sessions: ConsoleSessions, address: str) -> Page | Redirect:
    """Make a session for who knows a key's secret, or has a link of the last minute."""
    if not sessions.may_try(address):
        notice = "Too many attempts failed. Wait a minute."
        return Page("login.html", {"notice": notice, "key": visit.parameter("key")}, _TOO_MANY)
    if visit.host.startswith("http:") and address not in _LOCAL:
        notice = (
            "Secrets are not accepted over plain HTTP from another machine:"
            " put TLS in front, or sign in over loopback."
        )
        return Page("login.html", {"notice": notice, "key": ""}, _DENIED)
    token = visit.parameter("token")
    if token:
        cookie = await sessions.by_link(token)
    else:
        cookie = await sessions.by_secret(visit.parameter("key"), visit.parameter("secret"))
    if cookie is None:
        sessions.failed(address)
        notice = (
            "This link has expired."
            if token
            else "That key ID and secret do not match an access key of this server."
        )
        return Page("login.html", {"notice": notice, "key": visit.parameter("key")}, _DENIED)
    return Redirect(f"{visit.base}/", cookie)


async def sign_out(visit: Visit, sessions: ConsoleSessions, address: str) -> Redirect:  # noqa: ARG001 - of every such page
    """End the session, and take its cookie away."""
    await sessions.end(visit.session)
    return Redirect(f"{visit.base}/login", "")
