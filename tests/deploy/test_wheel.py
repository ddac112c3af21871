"""The wheel holds all that the server reads."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"


def test_the_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "src/redrive", "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = listed.stdout.split()
    source = tmp_path / "source"
    for name in files:
        copy = source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path)], cwd=source, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    with zipfile.ZipFile(tmp_path / built.stdout.split()[-1]) as wheel:
        inside = set(wheel.namelist())
    expected = {name.removeprefix("src/") for name in files if name.startswith("src/")}
    assert not expected - inside
