"""Requests mutated at random: their values, their names, and the bytes that they are sent as.

The same as `spoiling`, which Hypothesis draws from, for runs of hundreds of thousands of requests.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from redrive.model.http import Request
from tests.fuzz.spoiling import NASTY_TEXTS

_NUMBERS: Final = (0, -1, 1, 2**31, -(2**31) - 1, 2**63, 2**64, -(2**70), 1.5, 1e308, 10**25)
_BYTES: Final = (b"\0", b"\xff\xfe", b"%zz", b'"', b"{", b"[" * 300, b"<", b"&", b"\r\n", b"\\ud800")
_HEADERS: Final = (
    ("content-type", "text/plain"),
    ("content-type", "application/xml"),
    ("content-encoding", "gzip"),
    ("x-amz-target", "AmazonSQS.Nothing"),
    ("x-amz-target", "."),
    ("host", "bucket1.s3.localhost"),
    ("host", "a.execute-api.us-east-1.localhost"),
    ("host", ""),
    ("x-amz-date", "20260101T000000Z"),
    ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
    ("x-amz-decoded-content-length", "9"),
    ("accept", "application/json"),
    ("range", "bytes=5-1"),
    ("if-match", '"x"'),
    ("authorization", "AWS4-HMAC-SHA256 Credential=a/b/c"),
    ("x-amz-invocation-type", "Event"),
    ("x-amz-copy-source", "/bucket1/k1"),
)


def junk(rng: random.Random, depth: int = 0) -> Any:
    """A value that nobody asked for."""
    kind = rng.randrange(8 if depth < 2 else 5)
    if kind < 3:
        return rng.choice(NASTY_TEXTS)
    if kind == 3:
        return rng.choice(_NUMBERS)
    if kind == 4:
        return rng.choice([None, True, False, "", {}, []])
    if kind == 5:
        return [junk(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {str(rng.choice(NASTY_TEXTS)): junk(rng, depth + 1) for _ in range(rng.randrange(3))}


def bent(rng: random.Random, document: Any) -> Any:
    """A document of which one value is exchanged, doubled, wrapped or left out."""
    places = list(_places(document))
    if not places:
        return document if isinstance(document, dict) else junk(rng)
    holder, key = rng.choice(places)
    way = rng.randrange(7)
    if way < 2:
        holder[key] = junk(rng)
    elif way == 2:
        holder[key] = _inside(rng, holder[key])
    elif way == 3:
        del holder[key]
    elif way == 4:
        holder[key] = [holder[key]]
    elif isinstance(holder, list):
        holder.extend(holder[:1] * rng.randrange(1, 13))
    else:
        holder[str(rng.choice(NASTY_TEXTS))] = junk(rng)
    return document


def _inside(rng: random.Random, value: Any) -> Any:
    if not isinstance(value, str):
        return junk(rng)
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return value + str(rng.choice(NASTY_TEXTS))
    return json.dumps(bent(rng, document))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def bent_request(rng: random.Random, request: Request) -> Request:
    """A request whose head or body is bent where no value of it is."""
    way = rng.randrange(6)
    body, at = request.body, rng.randrange(len(request.body) + 1)
    if way == 0:
        return replace(request, body=body[:at])
    if way == 1:
        return replace(request, body=body[:at] + rng.choice(_BYTES) + body[at:])
    if way == 2:
        return replace(request, headers={**request.headers, **dict([rng.choice(_HEADERS)])})
    if way == 3:
        parts = request.path.split("/")
        parts[rng.randrange(len(parts))] = quote(
            str(rng.choice(NASTY_TEXTS)).encode(errors="surrogatepass"), safe="%"
        )
        return replace(request, path="/".join(parts) if parts[0] == "" else "/" + "/".join(parts))
    if way == 4:
        text = quote(str(rng.choice(NASTY_TEXTS)).encode(errors="surrogatepass"))
        joined = request.query + ("&" if request.query else "") + rng.choice(["a", "Action", "list-type"])
        return replace(request, query=f"{joined}={text}")
    return replace(request, method=rng.choice(["GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "OPTIONS"]))
