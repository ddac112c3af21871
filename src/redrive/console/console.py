"""The way in: each request is routed, signed in, checked, answered by its page, and rendered."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from redrive import __version__
from redrive.aws.wire.errors import AwsError
from redrive.console import PATH, auditing, deeds, navigation, routes, safety, words
from redrive.console.counting import RememberedCounts
from redrive.console.installation import ConsoleOptions, Installation
from redrive.console.rendering import PageRenderer, StaticFiles
from redrive.console.session import SESSION_SECONDS, ConsoleSession, ConsoleSessions
from redrive.console.views import SavedView, starred
from redrive.console.visit import File, Missing, Page, Redirect, Unusable, Visit
from redrive.engine.engine import Engine
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.model.search import SearchInvalidError

_HTML: Final = "text/html; charset=utf-8"
_FIELDS_MAX: Final = 500
_QUERY_CHARS_MAX: Final = 8000
_MEMO_MS: Final = 1000
_MEMO_SHARE_MS: Final = 500  # for each second until a page asks again: fifty who look cost as two
_MEMO_PAGES_MAX: Final = 256
_HOST_SHOWN_MAX: Final = 100
#: Of a live part, which stands in a page that has the navigation.
_NOTHING_AROUND: Final[Mapping[str, Any]] = {
    "nav_scope": None,
    "groups": [],
    "scopes": [],
    "starred": [],
    "views_here": [],
    "save_view": "",
}
_NO_STORE: Final = {"Cache-Control": "no-store", "Vary": "X-Redrive-Part"}


class Console:
    """Answers every request below `PATH`."""

    def __init__(
        self, engine: Engine, sessions: ConsoleSessions, installation: Installation, options: ConsoleOptions
    ) -> None:
        self._installation = installation
        self._engine = engine
        self._sessions = sessions
        self._options = options
        self._static = StaticFiles()
        self._counts = RememberedCounts(sessions.now)
        # Until when (ms), the tag, the page
        self._memo: dict[tuple[str, ...], tuple[int, str, Response]] = {}
        public = urlsplit(options.public_url)
        self._base = f"{public.path.rstrip('/')}{PATH}"
        self._public_host = public.netloc
        self._renderer = PageRenderer()
        self.close = self._renderer.close

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        try:
            response = await self._answer(request)
        except StoreUnavailable as error:
            response = await self._notice(request, 503, "The store does not answer", str(error))
        except Missing as error:
            response = await self._notice(request, 404, "Not found", str(error), error.near)
        except (Unusable, SearchInvalidError) as error:
            response = await self._notice(request, 400, "That cannot be used", str(error))
        except AwsError as error:
            response = await self._notice(request, 400, "The service refused", error.message)
        except RedriveError as error:
            response = await self._notice(
                request, 409, "Not possible now", f"{type(error).__name__}: {error}"
            )
        return Response(
            response.status, response.body, response.content_type, {**safety.HEADERS, **response.headers}
        )

    async def _answer(self, request: Request) -> Response:
        """Find the route and the session, refuse what may not be, and answer with the page."""
        is_own_host = self._options.is_own_host
        if is_own_host is not None and not is_own_host(request.host):
            return _misdirected(request.host)
        path = request.path.removeprefix(PATH)
        if path == "":
            return _moved(f"{self._base}/")
        if path.startswith("/static/"):
            digest, _, name = path.removeprefix("/static/").partition("/")
            return self._static.answer(digest, name) or Response(404, b"", "text/plain")
        match = routes.find(request.method, path)
        if match is None:
            raise Missing(f"There is no page {path}.")
        route, args = match
        scheme = self._scheme(request)
        session = await self._session(request, scheme)
        if request.method == "POST" and not safety.is_own_form(request, self._public_host):
            return await self._notice(
                request, 403, "Refused", "This form was not sent by a page of the console."
            )
        if session is None and not route.open:
            return _moved(f"{self._base}/login")
        if route.writes and not (session is not None and session.writes):
            return await self._notice(request, 403, "Read-only", "This console or this sign-in is read-only.")
        if session is not None and "account" in args and not session.sees(args["account"]):
            raise Missing(f"There is no account {args['account']} for you here.")
        if "region" in args and ResourceName("", args["region"]).private:
            raise Missing(f"There is no region {args['region']}.")
        visit = self._visit(request, session or ConsoleSession("", "", writes=False), args, scheme)
        return await self._page(request, route, visit, scheme)

    async def _page(self, request: Request, route: "routes.Route", visit: Visit, scheme: str) -> Response:
        """Answer with a page, a file or a redirect; the same page is answered from memory for a moment."""
        live_alone = visit.live_alone
        deed = None if live_alone or request.method == "POST" else deeds.deed_of(request, scheme)
        key = (request.path, request.query, visit.session.key_id, str(live_alone), safety.theme_of(request))
        if request.method == "POST":
            self._counts.forget()
            self._memo.clear()  # whoever changed something sees it
        elif deed is None and (remembered_page := self._remembered_page(request, key)) is not None:
            return remembered_page
        if route.special is not None:
            answer = await route.special(visit, self._sessions, request.client_host)
        else:
            answer = await route.page(visit)
        if isinstance(answer, File):
            return _attachment(answer)
        if route.action:
            await auditing.note(visit, route.action, answer, request.client_host)
        if isinstance(answer, Redirect):
            return _moved(answer.location, _cookies(answer, scheme))
        alone = live_alone and not route.navigates
        leads_to = None if alone else await navigation.scope_of(visit)
        around = _NOTHING_AROUND if alone else await self._around(visit, leads_to, route)
        response, tag = await self._render(request, answer, visit, around, live_alone=live_alone, deed=deed)
        if deed is not None:
            expired_cookie = {"Set-Cookie": safety.set_cookie("", scheme, 0, deeds.COOKIE)}
            return replace(response, headers={**response.headers, **expired_cookie})
        if request.method != "POST" and answer.status == 200:  # noqa: PLR2004 - what is not shown as asked is not kept
            if len(self._memo) >= _MEMO_PAGES_MAX:
                self._memo.clear()
            keep_ms = max(_MEMO_MS, answer.live_seconds * _MEMO_SHARE_MS if live_alone else 0)
            self._memo[key] = (self._sessions.now() + keep_ms, tag, response)
            return _unless_known(request, tag, response)
        return response

    async def _render(
        self,
        request: Request,
        page: Page,
        visit: Visit,
        around: Mapping[str, Any],
        *,
        live_alone: bool,
        deed: "deeds.Deed | None" = None,
    ) -> tuple[Response, str]:
        """A page with what stands around it, and its entity tag."""
        shell = self._shell(visit, page, live_alone=live_alone)
        values = {**shell, **around, "deed": deed, "theme": safety.theme_of(request), **page.values}
        body = await self._renderer.render(page.template, values, live_alone=live_alone)
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        headers = {**_NO_STORE, "ETag": tag, "X-Redrive-Now": str(visit.now)}
        if live_alone and page.instead_of:
            headers["X-Redrive-Into"] = page.instead_of
        return Response(page.status, b"" if request.method == "HEAD" else body, _HTML, headers), tag

    def _remembered_page(self, request: Request, key: tuple[str, ...]) -> Response | None:
        if key not in self._memo:
            return None
        until, tag, response = self._memo[key]
        return _unless_known(request, tag, response) if self._sessions.now() < until else None

    async def _around(
        self, visit: Visit, scope: ResourceName | None, route: "routes.Route | None" = None
    ) -> Mapping[str, Any]:
        """The values of what stands around a page: the navigation with its counts, and the scopes to go to."""
        known = route is not None and visit.session.account != ""
        counts = await self._counts.of(visit, scope) if known else {}
        views = await _views(visit, scope) if known and scope is not None else []
        here = visit.here.removeprefix(visit.base).partition("?")[0]
        return {
            "nav_scope": scope,
            "groups": navigation.room_groups(visit, scope, _came_from(visit), counts),
            "scopes": await navigation.scope_choices(visit, scope) if known else [],
            "starred": starred(views),
            "views_here": [view for view in views if view.path.partition("?")[0] == here],
            "save_view": _save_view(visit) if route is not None and route.savable else "",
        }

    def _shell(self, visit: Visit, page: Page, *, live_alone: bool) -> Mapping[str, Any]:
        """The values that each template has; what is polled does not say when, or it would never be the same."""
        clock_control = self._installation.clock_control
        return {
            "visit": visit,
            "base": self._base,
            "static": lambda name: f"{self._base}/{self._static.path(name)}",
            "writes": visit.session.writes,
            "now": visit.now,
            "asked_at": "" if live_alone else words.clock_time(visit.now),
            "version": __version__,
            "live_seconds": page.live_seconds,
            "clock_control": clock_control,
            "due": None if clock_control is None else clock_control.next_at(),
            "needs_sign_in": self._options.needs_sign_in,
            "rooms": navigation.ROOMS,
            "shortcuts": navigation.SHORTCUTS,
            "environment": self._options.environment,
            "docs": f"{self._base.removesuffix('console')}docs/" if self._options.documentation else "",
            "came_from": _came_from(visit),
            "signed_in": visit.session.account != "",
            "account": visit.args.get("account", ""),
            "region": visit.args.get("region", ""),
        }

    async def _notice(
        self, request: Request, status: int, title: str, text: str, near: tuple[str, str] | None = None
    ) -> Response:
        """A page that says what went wrong; `near` is the name that may be meant, with its link."""
        scheme = self._scheme(request)
        visit = self._visit(request, ConsoleSession("", None, writes=False), _scope_of(request), scheme)
        values = {
            "title": title,
            "text": text,
            "writes": None,
            "room": _room_of(request),
            "status": status,
            "near": near,
        }
        page = Page("notice.html", values, status)
        around = await self._around(visit, navigation.scope_in_address(visit))  # without a look at the store
        response, _ = await self._render(request, page, visit, around, live_alone=False)
        return response

    def _visit(
        self, request: Request, session: ConsoleSession, args: Mapping[str, str], scheme: str
    ) -> Visit:
        """The request as pages see it."""
        query = request.query[:_QUERY_CHARS_MAX]
        here = f"{self._base}{request.path.removeprefix(PATH)}{'?' + query if query else ''}"
        return Visit(
            engine=self._engine,
            session=session,
            base=self._base,
            here=here,
            args=args,
            query=_fields(query),
            form=_fields(request.body.decode("utf-8", "replace")) if request.method == "POST" else {},
            bodies_shown=self._options.bodies_shown,
            now=self._engine.clock.now(),
            host=self._options.public_url.rstrip("/") or f"{scheme}://{request.host}",
            installation=self._installation,
            live_alone=request.headers.get("x-redrive-part") == "live",
        )

    async def _session(self, request: Request, scheme: str) -> ConsoleSession | None:
        if not self._options.needs_sign_in:
            return ConsoleSession("", None, self._options.writes)
        return await self._sessions.of(safety.cookie_of(request, scheme))

    def _scheme(self, request: Request) -> str:
        return urlsplit(self._options.public_url).scheme or request.scheme


async def _views(visit: Visit, scope: ResourceName) -> Sequence[SavedView]:
    """The saved views of a scope."""
    beginning = f"/{scope.account}/{scope.region}/"
    lists = await visit.installation.saved_views.all()
    return [view for views in lists for view in views if view.path.startswith(beginning)]


def _scope_of(request: Request) -> Mapping[str, str]:
    """The account and region that a path names, for the navigation of a page that says what went wrong."""
    match = routes.find("GET", request.path.removeprefix(PATH))
    args = {} if match is None else match[1]
    return {name: args[name] for name in ("account", "region") if name in args}


def _came_from(visit: Visit) -> str:
    """The query by which a page of no scope leads back to the rooms of this one."""
    scope = navigation.scope_in_address(visit)
    return "" if scope is None else "?" + urlencode({"at": f"{scope.account}/{scope.region}"}, safe="/")


def _room_of(request: Request) -> str:
    """The room of the navigation that a path leads into, which is the way back from what went wrong there."""
    parts = request.path.removeprefix(PATH).split("/")[3:]
    return parts[0] if parts else ""


def _save_view(visit: Visit) -> str:
    """The link to save a page by; empty for a visitor who may only look."""
    if not visit.session.writes:
        return ""
    path, _, query = visit.here.removeprefix(visit.base).partition("?")
    filters = urlencode(parse_qsl(query, keep_blank_values=True))
    return visit.link("views", to=f"{path}?{filters}" if filters else path)


def _fields(text: str) -> Mapping[str, Sequence[str]]:
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise Unusable(f"A form has at most {_FIELDS_MAX} fields.") from None


def _unless_known(request: Request, tag: str, response: Response) -> Response:
    """The answer, or 304 for a browser that has it."""
    if request.headers.get("if-none-match") == tag:
        return Response(304, b"", _HTML, response.headers)
    return response


def _misdirected(host: str) -> Response:
    """The answer to a request for a host that is not this server's (RFC 9110, 15.5.20)."""
    name = "".join(char for char in host[:_HOST_SHOWN_MAX] if char.isprintable())
    text = f"The console does not answer as {name}: it is at the server's --public-url, or at what --allow-hosts names."
    return Response(421, text.encode(), "text/plain; charset=utf-8", _NO_STORE)


def _cookies(redirect: Redirect, scheme: str) -> Mapping[str, str]:
    """The session that begins or ends, or else what was done, which the next page says."""
    if redirect.cookie is not None:
        return {"Set-Cookie": safety.set_cookie(redirect.cookie, scheme, SESSION_SECONDS)}
    if not redirect.sentence:
        return {}
    text = deeds.cookie_text(redirect)
    return {"Set-Cookie": safety.set_cookie(text, scheme, deeds.SECONDS, deeds.COOKIE)}


def _moved(location: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        303, b"", "text/plain", {"Location": location, "Cache-Control": "no-store", **(headers or {})}
    )


def _attachment(file: File) -> Response:
    """A file that a browser keeps and never shows: names of queues are letters, digits, `-`, `_` and `.` alone."""
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"', "Cache-Control": "no-store"}
    return Response(200, file.body, file.content_type, headers)
