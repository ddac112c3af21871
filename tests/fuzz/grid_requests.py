"""Requests to Event Grid's doors that were right once: paths, queries, headers and bodies, with values spoilt."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlencode

from hypothesis import strategies as st

from redrive.model.http import Request
from tests.fuzz.grid_documents import CLOUD_EVENT, CUSTOM_EVENT, EVENT, documents_of
from tests.fuzz.grid_world import (
    BEARER,
    CLIENT,
    GROUP,
    KEY,
    LOCK,
    PROVIDER,
    QUESTION,
    SECOND_LOCK,
    SECRET,
    STORAGE,
    SUBSCRIPTION,
    GridWorld,
)
from tests.fuzz.spoiling import JUNK, TEXTS, spoilt

_STANDING: Final[Mapping[str, tuple[str, ...]]] = {
    "subscription": (SUBSCRIPTION,),
    "group": ("rg",),
    "provider": ("Microsoft.EventGrid",),
    "storageAccount": ("letters",),
    "container": ("dead",),
    "topic": ("orders", "clouds", "customs"),
    "domain": ("orders", "clouds", "customs"),
    "namespace": ("space",),
    "systemTopic": ("blobs",),
    "name": ("pulled", "pushed"),
    "deployment": ("empty",),
    "status": ("empty",),
    "eventSubscription": ("watcher", "waits"),
    "topicType": ("Microsoft.EventGrid.Topics", "Microsoft.Storage.StorageAccounts"),
    "location": ("local",),
}
_SCOPES: Final = (
    f"{PROVIDER}/topics/orders",
    f"{PROVIDER}/topics/clouds",
    f"{PROVIDER}/topics/customs",
    f"{PROVIDER}/domains/orders",
    f"{PROVIDER}/domains/orders/topics/first",
    f"{PROVIDER}/domains/orders/topics/second",
    f"{PROVIDER}/systemTopics/blobs",
    f"{PROVIDER}/namespaces/space",
    f"{PROVIDER}/namespaces/space/topics/stars",
    STORAGE,
    GROUP,
)
# What JSON cannot be made of by a writer of JSON: texts in its place, exchanged afterwards.
_RAW: Final[Mapping[str, bytes]] = {
    "@NaN": b"NaN",
    "@huge": b"1e400",
    "@long": b"9" * 5000,
    "@infinite": b"9" * 400,
    "@beyond": b"18446744073709551617",
    "@deep": b"[" * 251 + b"]" * 251,
    "@document": b'{"a":' * 250 + b"1" + b"}" * 250,
    "@deeper": b"[" * 1020 + b"]" * 1020,
    "@abyss": b"[" * 20_000,
    "@half": b'"\\ud800"',
    "@null": b'"\\u0000"',
    "@raw": b'"\xff\xfe"',
}
_SCALES: Final = st.sampled_from(
    [*_RAW, "text" * 20_000, "PT1M", "P9999999999999999D", "0001-01-01T00:00:00+23:59"]
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, with stand-ins for what only the server knows.

    Attributes:
        route: What it began as.
        method: As sent.
        path: As sent.
        query: As sent.
        headers: Names in lower case.
        body: As sent.
    """

    route: str
    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def request(self, known: Mapping[str, str]) -> Request:
        """The request, with what the server made in the place of the stand-ins."""
        query, body, headers = self.query, self.body, {"host": "localhost", **self.headers}
        for name, value in known.items():
            query = query.replace(quote_plus(name), quote_plus(value))
            body = body.replace(name.encode(), value.encode())
            headers = {header: text.replace(name, value) for header, text in headers.items()}
        if (token := headers.get("aeg-sas-token")) is not None and "<signature>" in token:
            headers["aeg-sas-token"] = _signed(token, known[KEY])
        return Request(self.method, self.path, query, headers, body)


@cache
def arm_routes() -> list[str]:
    """Method and pattern of every route of the resource manager."""
    return GridWorld(secured=False).arm.routes.names


# ---- parts -------------------------------------------------------------------------------------------------------


@st.composite
def bodies(draw: st.DrawFn, document: Any) -> bytes:
    """A document as JSON, with up to three of its values spoilt, and now and then what is not JSON."""
    made = deepcopy(document)
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
        made = _exchanged(draw, made) if draw(st.booleans()) else spoilt(draw, made)
    text = json.dumps(made, ensure_ascii=draw(st.booleans()))
    body = text.encode(errors="surrogatepass")
    for name, raw in _RAW.items():
        body = body.replace(f'"{name}"'.encode(), raw)
    match draw(st.sampled_from([*[""] * 20, "twice", "cut", "bytes"])):
        case "twice":  # of a member that is there twice, the last counts
            return re.sub(rb'"(\w+)":', rb'"\1":null,"\1":', body, count=draw(st.integers(1, 5)))
        case "cut":
            return body[: draw(st.integers(0, len(body)))]
        case "bytes":
            return draw(st.binary(max_size=50))
        case _:
            return body


def _exchanged(draw: st.DrawFn, document: Any) -> Any:
    """The document with one value that is too large, too deep or no JSON at all."""
    places = [(document, key) for key in document] if isinstance(document, dict) and document else []
    at = 0
    while at < len(places):
        holder, key = places[at]
        inner = holder[key]
        if isinstance(inner, dict):
            places += [(inner, name) for name in inner]
        elif isinstance(inner, list):
            places += [(inner, index) for index in range(len(inner))]
        at += 1
    if not places:
        return draw(_SCALES)
    holder, key = draw(st.sampled_from(places))
    if isinstance(holder, dict) and draw(st.booleans()):  # a member where it does not belong
        holder[draw(st.sampled_from([str(other) for _, other in places] + _MEMBERS))] = draw(_SCALES | JUNK)
    else:
        holder[key] = draw(_SCALES)
    return document


_MEMBERS: Final = [
    "resourceId",
    "endpointUrl",
    "destination",
    "deadLetterDestination",
    "push",
    "queue",
    "kind",
]


_FILTERS: Final = st.sampled_from(
    [
        "name eq 'orders'",
        "contains(name, 'o') and not (name ne 'x')",
        "not " * 500 + "name eq 'a'",
        "(" * 2000,
        "name eq 'a' or " * 500 + "name eq 'b'",
        "'" * 999,
        "name eq",
        "properties/x eq 1",
        "EventSubscriptionName eq '*'",
    ]
)
_NUMBERS: Final = st.sampled_from(["1", "100", "0", "-1", "9" * 5000, "\u0663", "1.5", "NaN", "", "\u00b2"])
_PLACES: Final = st.sampled_from(
    [base64.urlsafe_b64encode(one).decode() for one in (b"", b"a", b"\xff", b"\0", b"000")]
    + ["=", "a", "\u00e4"]
)
_PERIODS: Final = st.sampled_from(
    [
        "2026-01-01T00:00:00Z/2026-01-01T01:00:00Z",
        "0001-01-01T00:00:00+14:00/9999-12-31T23:59:59-14:00",
        "/",
        "PT1H/PT1H",
    ]
)


@st.composite
def queries(draw: st.DrawFn, *, lists: bool = False) -> str:
    """A query string: api-version, and what lists and metrics take, spoilt."""
    pairs = [("api-version", "2025-02-15")]
    for name, values in _PARAMETERS.items() if lists else ():
        if draw(st.integers(0, 2)) == 0:
            pairs.append((name, draw(values)))
    if draw(_MAYBE):
        pairs += [(f"p{number}", "v") for number in range(200)]
    query = urlencode([(name, value.encode(errors="surrogatepass")) for name, value in pairs])
    return query + draw(st.sampled_from(["", "", "", "&", "&=&&", "&%zz=%c3%28", ";"]))


_PARAMETERS: Final = {
    "$filter": _FILTERS | TEXTS,
    "$top": _NUMBERS | TEXTS,
    "$skipToken": _PLACES | TEXTS,
    "timespan": _PERIODS | TEXTS,
    "interval": st.sampled_from(["PT1M", "PT1H", "P1D", "x"]),
    "metricnames": st.sampled_from(["PublishSuccessCount", "", ",", "DroppedEventCount,x"]),
    "aggregation": TEXTS,
}
_MAYBE: Final = st.integers(0, 23).map(lambda number: number == 0)


@st.composite
def filled(draw: st.DrawFn, method: str, pattern: str) -> str:
    """A pattern's path, its names known to the server, new where something can be made, or odd."""
    last = pattern.rpartition("/")[2]

    def taken(match: re.Match[str]) -> str:
        if match[2]:
            return draw(st.sampled_from(_SCOPES)).lstrip("/")
        if draw(_MAYBE):
            return quote(draw(TEXTS).encode(errors="surrogatepass"), safe="") or "x"
        if method == "PUT" and match[0] == last and draw(st.booleans()):
            return "made"
        return draw(st.sampled_from(_standing(pattern, match[1])))

    path = re.sub(r"\{(\w+)(\.\.\.)?\}", taken, pattern)
    return path.upper() if draw(_MAYBE) else path


def _standing(pattern: str, name: str) -> tuple[str, ...]:
    if "/namespaces/" in pattern and name in ("topic", "eventSubscription"):
        return ("stars",) if name == "topic" else _STANDING["name"]
    return ("first",) if name == "topic" and "/domains/" in pattern else _STANDING[name]


# ---- the resource manager ----------------------------------------------------------------------------------------


@cache
def _written() -> list[tuple[str, Any]]:
    """Each route that takes a document, with each of the documents that it takes."""
    routes = [one for one in arm_routes() if one.startswith(("PUT", "PATCH")) or "regenerateKey" in one]
    return [(route, one) for route in routes for one in documents_of(*route.split(" ", 1))]


@st.composite
def arm_requests(draw: st.DrawFn) -> Asked:
    """A request of any route of the resource manager."""
    if draw(st.booleans()):
        route, document = draw(st.sampled_from(_written()))
        body = draw(bodies(document))
    else:
        route, body = draw(st.sampled_from(arm_routes())), b""
    method, _, pattern = route.partition(" ")
    sent = draw(st.sampled_from(["GET", "PUT", "POST", "TRACE"])) if draw(_MAYBE) else method
    headers = {"authorization": draw(_BEARERS), "content-type": "application/json"}
    query = draw(queries(lists=method == "GET"))
    return Asked(route, sent, draw(filled(method, pattern)), query, headers, body)


_BEARERS: Final = st.sampled_from(
    [
        *[f"Bearer {BEARER}"] * 60,
        "",
        "Bearer",
        "Bearer a.b",
        "Bearer \u00e4.\u00e4.\u00e4",
        f"Bearer {BEARER}x",
        "Bearer bnVsbA.bnVsbA.bnVsbA",
        "Bearer eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.W10.x",
        "Bearer eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJhcHBpZCI6e319.x",
        "SharedAccessKey \u00e4",
        "SharedAccessSignature r=x",
    ]
)


# ---- publishers --------------------------------------------------------------------------------------------------

_SCHEMAS: Final[Mapping[str, Any]] = {
    "orders": [EVENT, {**EVENT, "id": "2"}],
    "clouds": CLOUD_EVENT,
    "customs": [CUSTOM_EVENT],
}
_TYPES: Final = (
    "application/json",
    "application/cloudevents+json; charset=utf-8",
    "application/cloudevents-batch+json",
    "text/plain",
    "",
)
_HEADERS: Final = {
    "ce-specversion": "1.0",
    "ce-id": "1",
    "ce-source": "/shop",
    "ce-type": "Order.Placed",
    "ce-subject": "%E2%82%AC%zz",
}
_TOKENS: Final = st.sampled_from(
    [
        f"r={resource}&e={end}&s={signature}"
        for resource in (
            "http%3A%2F%2Flocalhost%2Feventgrid",
            "http%3A%2F%2F%5B",
            "%00%FF",
            "",
        )
        for end in ("1%2F1%2F2030%2012%3A00%3A00%20AM", "9999-12-31T23%3A59%3A59-14%3A00", "x", "0001-01-01")
        for signature in ("<signature>", "a", "\u00e4", "")
    ]
    + ["", "&&&", "s=", "r=1&e=1"]
)


@st.composite
def publications(draw: st.DrawFn) -> Asked:
    """Events posted to a topic or a domain, in its schema or another."""
    name = draw(st.sampled_from(list(_SCHEMAS)))
    document = deepcopy(_SCHEMAS[name if not draw(_MAYBE) else draw(st.sampled_from(list(_SCHEMAS)))])
    domain = draw(st.booleans())
    if domain and name == "orders":
        document = [{**one, "topic": "first"} if isinstance(one, dict) else one for one in document]
    content_type = draw(st.sampled_from(_TYPES))
    headers = {"content-type": content_type, **draw(_credentials())}
    if name == "clouds":
        if "batch" in content_type:
            document = [document]
        if draw(st.booleans()):
            headers |= _spoilt_headers(draw, _HEADERS)
    kind = "domains/" if domain else ""
    path = f"/eventgrid/{SUBSCRIPTION}/rg/{kind}{name}/api/events"
    if draw(_MAYBE):
        path = draw(
            st.sampled_from(
                [f"/eventgrid/{SUBSCRIPTION}/rg/domains/orders%3Afirst/api/events", "/api/events"]
            )
        )
        headers["host"] = draw(st.sampled_from(["orders.local.eventgrid.azure.net", ".eventgrid.", "x"]))
    method = draw(st.sampled_from([*["POST"] * 9, "OPTIONS", "PUT"]))
    query = draw(st.sampled_from(["api-version=2018-01-01", "aeg-sas-key=", "Aeg-Sas-Key=%ff&aeg-sas-key=a"]))
    return Asked("publish", method, path, query, headers, draw(bodies(document)))


@st.composite
def _credentials(draw: st.DrawFn) -> dict[str, str]:
    match draw(st.sampled_from(["key", "key", "token", "token", "bearer", "none", "odd"])):
        case "key":
            return {"aeg-sas-key": KEY}
        case "token":
            return {"aeg-sas-token": draw(_TOKENS)}
        case "bearer":
            return {"authorization": draw(_BEARERS)}
        case "odd":
            return {"aeg-sas-key": draw(st.sampled_from(["", "\u00e4", "k" * 9000]))}
        case _:
            return {}


def _spoilt_headers(draw: st.DrawFn, headers: Mapping[str, str]) -> dict[str, str]:
    made = dict(headers)
    if draw(st.booleans()):
        name = draw(st.sampled_from(list(made)))
        values = st.sampled_from(["", "%00", "%ff", "\u00e4", "2.0", "null", "v" * 5000])
        made[draw(st.sampled_from([name, "ce-", "ce-\u00e4", "ce-Upper", "ce-data", "ce-time"]))] = draw(
            values
        )
    return made


def _signed(token: str, key: str) -> str:
    signed = token.partition("&s=")[0]
    made = hmac.digest(base64.b64decode(key), signed.encode(), hashlib.sha256)
    return f"{signed}&s={quote_plus(base64.b64encode(made))}"


# ---- namespaces --------------------------------------------------------------------------------------------------

_TOPIC: Final = f"/eventgrid/{SUBSCRIPTION}/rg/space/topics/stars"
_LOCKS: Final = st.sampled_from(
    [
        LOCK,
        SECOND_LOCK,
        "",
        "a",
        "\u00e4",
        base64.urlsafe_b64encode(b"\x01" + b"\xff" * 36).decode(),
        base64.urlsafe_b64encode(b"\x01" + b"\0" * 36).decode(),
    ]
)


@st.composite
def pulls(draw: st.DrawFn) -> Asked:
    """Requests to a namespace: publish, receive, and settle with spoilt tokens."""
    verb = draw(st.sampled_from(["publish", "receive", "acknowledge", "release", "reject", "renewLock", "x"]))
    headers = {"content-type": "application/json", "authorization": draw(_BEARERS)}
    method = draw(st.sampled_from([*["POST"] * 9, "GET"]))
    if verb == "publish":
        headers["content-type"] = draw(st.sampled_from(_TYPES))
        batch = "batch" in headers["content-type"]
        if draw(st.booleans()):
            headers |= _spoilt_headers(draw, _HEADERS)
        body = draw(bodies([CLOUD_EVENT, CLOUD_EVENT] if batch else CLOUD_EVENT))
        return Asked(verb, method, f"{_TOPIC}:publish", draw(queries()), headers, body)
    name = draw(
        st.sampled_from(["pulled", "pulled", "pulled", "pushed", "watcher", "pulled%3Adead-letters", "%00"])
    )
    path = f"{_TOPIC}/eventsubscriptions/{name}:{verb}"
    pairs = [("api-version", "2024-06-01")]
    if verb == "receive":
        pairs += [("maxEvents", draw(_NUMBERS)), ("maxWaitTime", draw(_NUMBERS))]
        pairs = [pair for pair in pairs if draw(st.booleans())]
    if verb == "release":
        pairs.append(
            ("releaseDelayInSeconds", draw(st.sampled_from(["0", "10", "3600", "11", "-1", "9" * 5000])))
        )
    body = draw(bodies({"lockTokens": draw(st.lists(_LOCKS, max_size=4))}))
    many = "&a=b" * (200 if draw(_MAYBE) else 0)
    return Asked(verb, method, path, urlencode(pairs) + many, headers, body)


# ---- signing in --------------------------------------------------------------------------------------------------


@st.composite
def sign_ins(draw: st.DrawFn) -> Asked:
    """The cloud's description, tokens, and what agrees to a handshake."""
    route = draw(st.sampled_from(["token", "token", "metadata", "configuration", "agree"]))
    if route == "agree":
        query = draw(
            st.sampled_from([f"id={quote_plus(QUESTION)}", "id=", "id=%00", "", "id=a&id=b", "x=y" * 200])
        )
        method = draw(st.sampled_from(["GET", "POST", "PUT"]))
        return Asked(route, method, "/eventsubscriptions/waits/validate", query)
    if route == "token":
        form = {
            "grant_type": "client_credentials",
            "client_id": CLIENT,
            "client_secret": SECRET,
            "scope": "x/.default",
        }
        if draw(st.booleans()):
            form[draw(st.sampled_from(list(form)))] = draw(st.sampled_from(["", "\0", "\u00e4", "x" * 9000]))
        body = urlencode(form).encode() + draw(
            st.sampled_from([b"", b"", b"&%ff=%ff", b"&a=b" * 200, b"\xff"])
        )
        path = draw(
            st.sampled_from(["/t/oauth2/token", "/%FF%00/oauth2/v2.0/token", "/oauth2/x", "/t/oauth2/"])
        )
        return Asked(route, draw(st.sampled_from(["POST", "POST", "GET"])), path, draw(queries()), {}, body)
    path = "/metadata/endpoints" if route == "metadata" else "/t/v2.0/.well-known/openid-configuration"
    headers = {"host": draw(st.sampled_from(["localhost", "", "\u00e4", "a b", "x" * 5000]))}
    return Asked(route, draw(st.sampled_from(["GET", "GET", "DELETE"])), path, draw(queries()), headers)


def asked() -> st.SearchStrategy[Asked]:
    """Any of them."""
    return st.one_of(arm_requests(), arm_requests(), publications(), pulls(), sign_ins())
