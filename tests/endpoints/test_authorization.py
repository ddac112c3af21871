import random

import pytest

from redrive.endpoints.authorization import (
    Basic,
    Challenge,
    Digest,
    authorizer_for,
    read_challenges,
)

_CHANCE = random.Random(1)
_CNONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_a_digest_is_the_rfcs(algorithm: str, response: str) -> None:
    """RFC 7616, 3.9.1."""
    digest = Digest(
        user="Mufasa",
        password="Circle of Life",
        realm="http-auth@example.org",
        nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
        algorithm=algorithm,
        counts=True,
        rng=_CHANCE,
    )
    assert digest.response("GET", "/dir/index.html", "00000001", _CNONCE) == response


def test_a_digest_without_quality_is_the_older_rfcs() -> None:
    """RFC 2069's example, with the response its errata give."""
    digest = Digest(
        user="Mufasa",
        password="CircleOfLife",
        realm="testrealm@host.com",
        nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093",
        opaque=None,
        algorithm="MD5",
        counts=False,
        rng=_CHANCE,
    )
    assert digest.response("GET", "/dir/index.html", "", "") == "1949323746fe6a43ef61f9606e7febea"
    assert "nc=" not in digest.header("GET", "/")


def test_a_digest_counts_its_requests_and_never_repeats_its_nonce() -> None:
    digest = Digest("ann", "secret", 'the "realm"', "abc", "xyz", "SHA-256", counts=True, rng=_CHANCE)
    (one,), (two,) = (read_challenges([digest.header("POST", "/hook?a=1")]) for _ in range(2))
    assert (one.parameters["nc"], two.parameters["nc"]) == ("00000001", "00000002")
    assert one.parameters["cnonce"] != two.parameters["cnonce"]
    assert one.parameters["realm"] == 'the "realm"'
    assert one.parameters["uri"] == "/hook?a=1"
    assert one.parameters["opaque"] == "xyz"
    assert one.parameters["response"] == digest.response(
        "POST", "/hook?a=1", "00000001", one.parameters["cnonce"]
    )


def test_basic_is_the_rfcs() -> None:
    """RFC 7617, 2 and 2.1."""
    assert Basic("Aladdin", "open sesame").header("POST", "/") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    assert Basic("test", "123£").header("POST", "/") == "Basic dGVzdDoxMjPCow=="


@pytest.mark.parametrize(
    ("headers", "challenges"),
    [
        (['Basic realm="WallyWorld"'], [("basic", {"realm": "WallyWorld"})]),
        (["basic"], [("basic", {})]),
        (['BASIC REALM="a", CHARSET=UTF-8'], [("basic", {"realm": "a", "charset": "UTF-8"})]),
        (
            ['Newauth realm="apps", type=1, title="Login to \\"apps\\"", Basic realm="simple"'],
            [
                ("newauth", {"realm": "apps", "type": "1", "title": 'Login to "apps"'}),
                ("basic", {"realm": "simple"}),
            ],
        ),
        (["Negotiate", 'Basic realm="b"'], [("negotiate", {}), ("basic", {"realm": "b"})]),
        (
            ['Digest realm="r", qop="auth, auth-int", nonce="n,=1", stale = true'],
            [("digest", {"realm": "r", "qop": "auth, auth-int", "nonce": "n,=1", "stale": "true"})],
        ),
        ([""], []),
        (['realm="alone"'], []),
        (["\x00\x01"], []),
    ],
)
def test_challenges_are_read(headers: list[str], challenges: list[tuple[str, dict[str, str]]]) -> None:
    assert list(read_challenges(headers)) == [Challenge(*challenge) for challenge in challenges]


_BASIC = 'Basic realm="r"'
_MD5 = 'Digest realm="r", nonce="n", qop="auth"'
_SHA = 'Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256'


@pytest.mark.parametrize(
    ("headers", "secure", "chosen"),
    [
        ([_BASIC], False, "Basic"),
        ([_BASIC], True, "Basic"),
        ([_BASIC, _MD5], True, "MD5"),
        ([_MD5, _SHA, _BASIC], True, "SHA-256"),
        ([f"{_BASIC}, {_SHA}, {_MD5}"], True, "SHA-256"),
        ([_MD5], False, None),
        ([_MD5, _BASIC], False, "Basic"),
        (['Digest realm="r", nonce="n", qop="auth-int"'], True, None),
        (['Digest realm="r", nonce="n", algorithm=SHA-512-256'], True, None),
        (['Digest realm="r"'], True, None),
        (["Bearer", "Negotiate"], True, None),
        ([], True, None),
    ],
)
def test_the_strongest_that_can_be_answered_is_chosen(
    headers: list[str], secure: bool, chosen: str | None
) -> None:
    found = authorizer_for(read_challenges(headers), "ann", "secret", secure=secure, rng=_CHANCE)
    assert (found.algorithm if isinstance(found, Digest) else found and "Basic") == chosen
