"""Safety: which forms are accepted as the console's own pages', and what every answer forbids a browser."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from redrive.model.http import Request

#: Nothing from elsewhere, nothing inline, no eval; strangers' text could do nothing even where it were not escaped.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SESSION: Final = "redrive"  # the cookie of who is signed in
THEME: Final = "redrive-theme"  # the cookie of who chose a light or a dark theme, which the script writes
_FORM: Final = "application/x-www-form-urlencoded"


def is_own_form(request: Request, public_host: str) -> bool:
    """True if a form can only have been sent by one of the console's pages.

    Browsers leave `Sec-Fetch-Site` out over plain HTTP to names that may be another machine's; then `Origin` says it.
    With neither of the two, nobody knows, and it is refused.
    """
    headers = request.headers
    if headers.get("content-type", "").partition(";")[0].strip() != _FORM:
        return False
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    host = urlsplit(headers.get("origin", "")).netloc.lower()
    return host != "" and host in (request.host.lower(), public_host.lower())


def cookie_name(scheme: str, base: str = SESSION) -> str:
    """The name of a cookie: over TLS one that no other host or path can have set."""
    return f"__Host-{base}" if scheme == "https" else base


def cookie_of(request: Request, scheme: str, base: str = SESSION) -> str:
    """The value of a cookie in a request, or the empty string."""
    for part in request.headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == cookie_name(scheme, base):
            return value
    return ""


def theme_of(request: Request) -> str:
    """`light` or `dark` where the visitor chose one; empty: the system's."""
    theme = cookie_of(request, "", THEME)
    return theme if theme in ("light", "dark") else ""


def set_cookie(value: str, scheme: str, seconds: int, base: str = SESSION) -> str:
    """The header that sets a cookie, or takes it away where `value` is empty."""
    secure = "; Secure" if scheme == "https" else ""
    age = seconds if value else 0
    return f"{cookie_name(scheme, base)}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
