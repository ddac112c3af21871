import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.http import Request
from redrive.server.limits import SLICE_BYTES, HttpLimits
from redrive.server.reading import ReadingPhase, RequestReader
from tests.server.client import chunked, get, message, post

_USUAL = HttpLimits()
_SMALL = HttpLimits(request_line_bytes_max=64, header_bytes_max=256, header_count_max=8, body_bytes_max=32)
_CHUNKED = "Transfer-Encoding: chunked"


def _reader(limits: HttpLimits = _USUAL) -> RequestReader:
    return RequestReader(limits, "http", "10.0.0.7")


def _read(*pieces: bytes, limits: HttpLimits = _USUAL) -> list[Request]:
    reader = _reader(limits)
    for piece in pieces:
        reader.feed(piece)
    assert reader.refusal is None, reader.refusal
    return list(reader.ready)


def _refused(*pieces: bytes, limits: HttpLimits = _SMALL) -> int:
    reader = _reader(limits)
    for piece in pieces:
        reader.feed(piece)
    assert reader.refusal is not None
    assert reader.is_finished
    return reader.refusal.status


def test_a_request_is_read_whole() -> None:
    raw = message("POST", "/q%2Fa/b%20c?x=1&y=%3F?", "Content-Length: 2", "X-Amz-Target:  A.B \t") + b"hi"
    assert _read(raw) == [
        Request(
            method="POST",
            path="/q%2Fa/b%20c",
            query="x=1&y=%3F?",
            headers={"host": "redrive.test", "content-length": "2", "x-amz-target": "A.B"},
            body=b"hi",
            scheme="http",
            client_host="10.0.0.7",
        )
    ]


def test_header_values_are_latin_1_and_repeated_ones_are_joined() -> None:
    (request,) = _read(get("/", "X-A: \xe9", "x-a: 2", "X-Empty:", "X-A: 3"))
    assert request.headers == {"host": "redrive.test", "x-a": "\xe9, 2, 3", "x-empty": ""}


@pytest.mark.parametrize(
    ("target", "path", "query", "host"),
    [
        ("//double", "//double", "", "redrive.test"),
        ("/?", "/", "", "redrive.test"),
        ("*", "*", "", "redrive.test"),
        ("http://other:81/a%20b?c=d", "/a%20b", "c=d", "other:81"),
        ("http://user:secret@other", "/", "", "other"),
        ("https://other?c=/d", "/", "c=/d", "other"),
    ],
)
def test_targets_in_every_form(target: str, path: str, query: str, host: str) -> None:
    (request,) = _read(message("OPTIONS", target))
    assert (request.path, request.query, request.host) == (path, query, host)


def test_a_chunked_body_is_joined_and_its_trailer_is_not_honoured() -> None:
    raw = message("POST", "/", _CHUNKED) + chunked(b"one ", b"two ", b"three", trailer=b"Host: evil\r\n")
    first, second = _read(raw + get("/next"))
    assert first.body == b"one two three"
    assert first.host == "redrive.test"
    assert second.path == "/next"


@pytest.mark.parametrize(
    "body", [b"Content-Length: 3\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"]
)
@pytest.mark.parametrize("cut", [10, 60, 110, 400])
def test_an_upgrade_is_ignored_and_the_body_read(body: bytes, cut: int) -> None:
    raw = b"PUT /p?q HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + body
    reader = _reader()
    reader.feed(raw[:cut])
    reader.feed(raw[cut:] + get("/never"))
    assert reader.is_finished
    assert not reader.refusal
    (request,) = reader.ready
    assert (request.method, request.path, request.query, request.body) == ("PUT", "/p", "q", b"abc")
    assert request.host == "a"


def test_nothing_is_read_after_the_last_request() -> None:
    reader = _reader()
    reader.feed(get("/1") + get("/2", "Connection: close") + get("/3"))
    reader.feed(get("/4"))
    assert [request.path for request in reader.ready] == ["/1", "/2"]
    assert reader.is_finished
    assert reader.refusal is None


def test_requests_before_a_malformed_one_are_kept() -> None:
    reader = _reader()
    reader.feed(get("/1") + b"BAD\r\n\r\n")
    assert [request.path for request in reader.ready] == ["/1"]
    assert reader.refusal is not None


def test_http_1_0_keeps_the_connection_only_where_asked_to() -> None:
    reader = _reader()
    reader.feed(b"GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert not reader.is_finished
    reader.feed(b"GET /2 HTTP/1.0\r\n\r\n")
    assert [request.host for request in reader.ready] == ["", ""]
    assert reader.is_finished


def _raw(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


@pytest.mark.parametrize(
    ("status", "raw"),
    [
        (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),  # TLS spoken to a plain port
        (400, b"BREW / HTTP/1.1\r\n\r\n"),
        (400, b"get / HTTP/1.1\r\n\r\n"),
        (400, _raw("GET / HTTP/1.2")),
        (400, _raw("GET / HTTP/1.1")),
        (400, _raw("GET / HTTP/1.1", "Host: a", "Host: b")),
        (400, _raw("GET /a b HTTP/1.1", "Host: a")),
        (400, b"GET / HTTP/1.1\nHost: a\n\n"),
        (400, get("/", "X-A : b")),
        (400, get("/", "X A: b")),
        (400, get("/", ": b")),
        (400, get("/", "X-A: b", " folded")),
        (400, get("/", "X-A: b\0c")),
        (400, get("/", "X-A: b\rc")),
        (400, message("POST", "/", "Content-Length: 3", _CHUNKED)),
        (400, message("POST", "/", _CHUNKED, "Content-Length: 3")),
        (400, message("POST", "/", "Content-Length: 3", "Content-Length: 4")),
        (400, message("POST", "/", "Content-Length: 3, 3")),
        (400, message("POST", "/", "Content-Length: +3")),
        (400, message("POST", "/", "Content-Length: -3")),
        (400, message("POST", "/", "Content-Length: 0x3")),
        (400, message("POST", "/", "Content-Length:")),
        (400, message("POST", "/", "Content-Length: 99999999999999999999")),
        (501, message("POST", "/", "Transfer-Encoding: xchunked")),
        (400, message("POST", "/", _CHUNKED, "Transfer-Encoding: identity")),
        (400, message("POST", "/", _CHUNKED, version="1.0")),
        (400, message("POST", "/", _CHUNKED) + b"3\nabc\n0\n\n"),
        (400, message("POST", "/", _CHUNKED) + b"-3\r\nabc\r\n"),
        (400, message("POST", "/", _CHUNKED) + b"3 \r\nabc\r\n"),
        (400, message("POST", "/", _CHUNKED) + b"3\r\nabcd\r\n"),
        (413, message("POST", "/", "Content-Length: 33")),
        (413, message("POST", "/", _CHUNKED) + b"20\r\n" + b"x" * 32 + b"\r\n1\r\nx"),
        (414, b"GET /" + b"x" * 64),
        (417, message("POST", "/", "Expect: a-miracle")),
        (431, get("/", "X-Long: " + "x" * 256)),
        (431, get("/", *(f"X-{n}: {n}" for n in range(8)))),
        (431, get("/", *("X-A: b" for _ in range(8)))),
        (501, message("POST", "/", "Transfer-Encoding: gzip, chunked")),
        (501, message("CONNECT", "redrive.test:80")),
        (505, message("GET", "/", version="2.0")),
        (505, b"GET /\r\n\r\n"),
    ],
)
def test_each_malformed_request_has_its_status(status: int, raw: bytes) -> None:
    assert _refused(raw) == status
    assert _refused(*(raw[i : i + 1] for i in range(len(raw)))) == status


@pytest.mark.parametrize(
    "unending",
    [
        b"GET / HTTP/1.1\r\nX-A: ",
        b"GET / HTTP/1.1\r\n",
        message("POST", "/", _CHUNKED) + b"0\r\nX-A: ",
        message("POST", "/", _CHUNKED) + b"1;ext=",
    ],
    ids=["value", "name", "trailer", "extension"],
)
def test_an_unending_line_is_refused(unending: bytes) -> None:
    pieces = [b"a" * 1024] * (SLICE_BYTES // 1024 + 1)
    assert _refused(unending, *pieces) == 431


def test_limits_are_reached_without_refusal() -> None:
    limits = HttpLimits(header_bytes_max=40, header_count_max=3, request_line_bytes_max=2, body_bytes_max=5)
    assert _read(post(b"12345", "A: b", target="/2"), limits=limits)
    raw = message("POST", "/2", _CHUNKED) + chunked(b"123", b"45")
    assert _read(raw, limits=HttpLimits(body_bytes_max=5))


def test_a_long_body_is_no_unended_header() -> None:
    pieces = [b"x" * SLICE_BYTES] * 20
    (request,) = _read(
        message("PUT", "/", f"Content-Length: {SLICE_BYTES * 20}"),
        *pieces,
        limits=HttpLimits(header_bytes_max=100),
    )
    assert len(request.body) == SLICE_BYTES * 20


def test_the_phase_follows_the_bytes_of_a_request() -> None:
    reader = _reader()
    phases = []
    for piece in (
        b"\r\n\r\n",
        b"P",
        message("OST", "/", "Content-Length: 3", "Expect: 100-continue"),
        b"ab",
        b"c",
    ):
        reader.feed(piece)
        phases.append((reader.phase, reader.body_bytes))
    assert phases == [
        (ReadingPhase.BETWEEN, 0),
        (ReadingPhase.HEAD, 0),
        (ReadingPhase.BODY, 0),
        (ReadingPhase.BODY, 2),
        (ReadingPhase.BETWEEN, 3),
    ]
    assert reader.wants_continue


_SENTENCES = [
    get("/a?b=c", "X-A: b", "X-A: c"),
    post(b"hello", "Connection: keep-alive", "X-Long: " + "y" * 300),
    message("POST", "/", _CHUNKED) + chunked(b"one", b"two" * 50, trailer=b"X-T: u\r\n"),
    message("HEAD", "http://other/x"),
    message("POST", "/", "Expect: 100-continue", "Content-Length: 1") + b"z",
]


@given(
    st.lists(st.sampled_from(_SENTENCES), min_size=1, max_size=4), st.lists(st.integers(0, 900), max_size=8)
)
def test_requests_are_read_the_same_however_their_bytes_are_cut(
    sentences: list[bytes], cuts: list[int]
) -> None:
    raw = b"".join(sentences)
    edges = [0, *sorted(cut for cut in cuts if cut < len(raw)), len(raw)]
    pieces = [raw[start:end] for start, end in itertools.pairwise(edges)]
    assert _read(*pieces) == [request for sentence in sentences for request in _read(sentence)]


_FRAGMENTS = st.sampled_from(
    [
        b"GET ",
        b"/",
        b" HTTP/1.1\r\n",
        b"Host: a\r\n",
        b"\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: upgrade\r\nUpgrade: h2c\r\n",
        b"abc",
        b"3\r\n",
        b"0\r\n\r\n",
        b"Expect: 100-continue\r\n",
        b":",
        b"\0",
    ]
)


@given(st.lists(_FRAGMENTS | st.binary(max_size=40), max_size=30))
def test_no_bytes_break_the_reader(pieces: list[bytes]) -> None:
    reader = _reader(_SMALL)
    for piece in pieces:
        reader.feed(piece)
    for request in reader.ready:
        assert len(request.body) <= _SMALL.body_bytes_max
        assert len(request.path) + len(request.query) <= _SMALL.request_line_bytes_max
