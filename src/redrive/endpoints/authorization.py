"""Answers to an endpoint that asks who is calling: HTTP's Basic (RFC 7617) and Digest (RFC 7616)."""

import hashlib
import random
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

_ALGORITHMS: Final = {"MD5": "md5", "SHA-256": "sha256"}
_CNONCE_BYTES: Final = 16

# One element of a WWW-Authenticate list: a parameter (quoted or not), or the name of a scheme, which begins a new
# challenge. A scheme is told from a parameter by what follows it: no equals sign.
_ELEMENT: Final = re.compile(
    r"""[\s,]*(?P<name>[\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s,"]+)))?"""
)
_ESCAPED: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Challenge:
    """A challenge of an endpoint: the authorization that it asks for."""

    scheme: str  # In lower case: `basic`, `digest` …
    parameters: Mapping[str, str]  # Names in lower case


class Authorizer(Protocol):
    """A maker of the Authorization header of a request."""

    def header(self, method: str, target: str) -> str:
        """The header for a request of that method and target (path and query)."""
        ...


def read_challenges(headers: Iterable[str]) -> Iterator[Challenge]:
    """The challenges in a response's WWW-Authenticate headers, in order; what cannot be read is left out."""
    for header in headers:
        scheme, parameters = "", dict[str, str]()
        for element in _ELEMENT.finditer(header):
            name, quoted, bare = element["name"].lower(), element["quoted"], element["bare"]
            if quoted is None and bare is None:  # a name alone is the scheme of the next challenge
                if scheme:
                    yield Challenge(scheme, parameters)
                scheme, parameters = name, {}
            else:
                parameters[name] = bare if quoted is None else _ESCAPED.sub(r"\1", quoted)
        if scheme:
            yield Challenge(scheme, parameters)


def authorizer_for(
    challenges: Iterable[Challenge], user: str, password: str, *, secure: bool, rng: random.Random
) -> Authorizer | None:
    """The authorizer for the strongest challenge that can be answered; None if none can.

    Args:
        challenges: The endpoint's.
        user: Whose password it is.
        password: The password.
        secure: Whether the endpoint is https; SNS answers a Digest challenge there alone.
        rng: Makes the client's nonces.
    """
    answers: dict[str, Authorizer] = {}
    for challenge in challenges:
        if challenge.scheme == "basic":
            answers.setdefault("basic", Basic(user, password))
        elif challenge.scheme == "digest" and secure and (digest := _digest(challenge, user, password, rng)):
            answers.setdefault(digest.algorithm, digest)
    return next((answers[name] for name in ("SHA-256", "MD5", "basic") if name in answers), None)


@dataclass(frozen=True, slots=True)
class Basic:
    """User and password as they are, in base 64."""

    user: str
    password: str = field(repr=False)

    def header(self, method: str, target: str) -> str:  # noqa: ARG002 - the same for every request
        """See Authorizer."""
        return f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


@dataclass(slots=True)
class Digest:
    """A proof that one knows the password, good for one request."""

    user: str  # User name
    password: str = field(repr=False)
    realm: str  # Realm of the endpoint
    nonce: str  # The endpoint's, used for many requests that are counted
    opaque: str | None  # Given back as it came; None if none came
    algorithm: str  # `MD5` or `SHA-256`
    # Whether requests are counted (`qop=auth`); endpoints that know RFC 2069 only do not ask for it.
    counts: bool
    rng: random.Random  # Makes the client's nonces
    requests: int = 0  # How many headers were made

    def header(self, method: str, target: str) -> str:
        """See Authorizer."""
        self.requests += 1
        cnonce = self.rng.randbytes(_CNONCE_BYTES).hex()
        return "Digest " + ", ".join(self._fields(method, target, cnonce))

    def _fields(self, method: str, target: str, cnonce: str) -> Iterator[str]:
        """The fields of the header (RFC 7616); with `qop`, the request's number and a nonce of our own are among them."""
        count = f"{self.requests:08x}"
        yield f"username={_quote(self.user)}"
        yield f"realm={_quote(self.realm)}"
        yield f"uri={_quote(target)}"
        yield f"algorithm={self.algorithm}"
        yield f"nonce={_quote(self.nonce)}"
        if self.counts:
            yield from (f"nc={count}", f"cnonce={_quote(cnonce)}", "qop=auth")
        yield f'response="{self.response(method, target, count, cnonce)}"'
        if self.opaque is not None:
            yield f"opaque={_quote(self.opaque)}"

    def response(self, method: str, target: str, count: str, cnonce: str) -> str:
        """The proof (RFC 7616, 3.4.1)."""
        secret = self._hash(f"{self.user}:{self.realm}:{self.password}")
        request = self._hash(f"{method}:{target}")
        counted = f"{count}:{cnonce}:auth:" if self.counts else ""
        return self._hash(f"{secret}:{self.nonce}:{counted}{request}")

    def _hash(self, text: str) -> str:
        return hashlib.new(_ALGORITHMS[self.algorithm], text.encode(), usedforsecurity=False).hexdigest()


def _digest(challenge: Challenge, user: str, password: str, rng: random.Random) -> Digest | None:
    """The digest a challenge asks for, or None for an unknown algorithm or a signed body (`qop=auth-int` alone)."""
    parameters = challenge.parameters
    algorithm = parameters.get("algorithm", "MD5").upper()
    qualities = {quality.strip() for quality in parameters.get("qop", "").lower().split(",")} - {""}
    if algorithm not in _ALGORITHMS or "nonce" not in parameters or (qualities and "auth" not in qualities):
        return None
    return Digest(
        user=user,
        password=password,
        realm=parameters.get("realm", ""),
        nonce=parameters["nonce"],
        opaque=parameters.get("opaque"),
        algorithm=algorithm,
        counts=bool(qualities),
        rng=rng,
    )


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
