"""Downloads of code: links that anybody can follow who was given them, for ten minutes."""

from base64 import b64decode, b64encode
from typing import Final
from urllib.parse import parse_qs, quote

from redrive.access.secret import InstallationSecret
from redrive.aws.lambda_.documents.ports import CodeKeeper
from redrive.engine.ports import Clock
from redrive.model.errors import NotFound
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName

PATH: Final = "/_redrive/function-code/"
_VALID_MS: Final = 10 * 60 * 1000  # as long as Amazon's links
_PURPOSE: Final = "links to the code of functions"
_PARTS: Final = 4


class Downloads:
    """Makes links to archives, and answers whoever follows them."""

    def __init__(self, code: CodeKeeper, secret: InstallationSecret, clock: Clock) -> None:
        """Serve what is kept here, to those who show a token of this secret."""
        self._code = code
        self._secret = secret
        self._clock = clock

    def url(self, base_url: str, name: ResourceName, digest: str) -> str:
        """The link to an archive: the name it is kept under, and its SHA-256 in base64."""
        path = f"{name.key}/{b64decode(digest).hex()}.zip"
        expires = str(self._clock.now() + _VALID_MS)
        token = self._secret.tag(_PURPOSE, f"{path}?{expires}")
        return f"{base_url}{PATH}{quote(path)}?expires={expires}&token={token}"

    async def answer(self, request: Request) -> Response:
        """Answer a request below PATH: with the archive, or with 403 or 404."""
        path = request.path.removeprefix(PATH)
        query = parse_qs(request.query)
        expires, token = query.get("expires", ["0"])[0], query.get("token", [""])[0]
        if not self._secret.is_tag(_PURPOSE, f"{path}?{expires}", token) or int(expires) < self._clock.now():
            return Response(403, b"This link has expired, or was never given.\n", "text/plain")
        account, region, name, file = path.split("/", _PARTS - 1)
        digest = b64encode(bytes.fromhex(file.removesuffix(".zip"))).decode()
        try:
            archive = await self._code.archive(ResourceName(account, region, name), digest)
        except NotFound:
            return Response(404, b"This code is not there any more.\n", "text/plain")
        return Response(200, archive, "application/zip")
