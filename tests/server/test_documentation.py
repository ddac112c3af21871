import asyncio
import base64
import hashlib
from pathlib import Path

import pytest

from redrive.model.http import Request, Response
from redrive.server.landing import DocumentationSite
from redrive.settings import SettingsInvalid

_PAGE = b"<html><style>a{}</style><script>go()</script><script src='a.js'></script></html>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    (site / "docs").mkdir(parents=True)
    (site / "index.html").write_bytes(_PAGE)
    (site / "docs" / "a b.js").write_text("go = 1")
    (tmp_path / "secret.html").write_text("secret")
    return site


def _answer(folder: Path, path: str, method: str = "GET") -> Response:
    site = DocumentationSite(str(folder))
    return asyncio.run(site.answer(Request(method, path, "", {}, b"")))


def test_pages_are_shown_and_only_what_was_built_into_them_runs(folder: Path) -> None:
    page = _answer(folder, "/_redrive/docs/")
    assert (page.status, page.body, page.content_type) == (200, _PAGE, "text/html; charset=utf-8")
    policy = page.headers["Content-Security-Policy"]
    for kind, text in (("script-src", b"go()"), ("style-src", b"a{}")):
        digest = base64.b64encode(hashlib.sha256(text).digest()).decode()
        assert f"{kind} 'self' 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_other_files_have_their_types(folder: Path) -> None:
    script = _answer(folder, "/_redrive/docs/docs/a%20b.js", "HEAD")
    assert (script.status, script.content_type) == (200, "text/javascript; charset=utf-8")
    assert "script-src 'self';" in script.headers["Content-Security-Policy"]
    assert _answer(folder, "/_redrive/docs").headers["Location"] == "/_redrive/docs/"


@pytest.mark.parametrize(
    "path", ["../secret.html", "%2e%2e/secret.html", "docs/../../secret.html", "/etc/passwd", "docs"]
)
def test_nothing_outside_is_shown(folder: Path, path: str) -> None:
    assert _answer(folder, f"/_redrive/docs/{path}").status == 404
    assert _answer(folder, "/_redrive/docs/", "POST").status == 404


def test_a_folder_that_was_not_built_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"has no index\.html: make docs"):
        DocumentationSite(str(tmp_path))
