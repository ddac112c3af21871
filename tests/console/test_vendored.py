"""Vendored scripts are those of npm, but for the line that names a map of their source."""

import hashlib
from importlib import resources

import pytest

from redrive.console.static import VENDORED

HASHES = {
    "vendor/htmx-4.0.1.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    "vendor/hx-ptag-4.0.1.min.js": "1993b23e86553100e4f45eed1b756eb8cf53c5b2244caf98e58662dfde9ca069",
}


@pytest.mark.parametrize("name", VENDORED)
def test_a_vendored_script_is_the_one_that_was_read(name: str) -> None:
    content = (resources.files("redrive.console") / "static" / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == HASHES[name]


def test_the_licence_goes_along() -> None:
    licence = resources.files("redrive.console") / "static/vendor/LICENSE"
    assert "Zero-Clause BSD" in licence.read_text()
