"""`python -m tests.deploy.image --base DIRECTORY`: the Dockerfile's steps without Docker, and the image put to work.

For machines that run no engine. DIRECTORY is the root of a Debian with Python 3.11, in place of the base image:

    debootstrap --variant=minbase --include=python-is-python3,python3-venv,ca-certificates bookworm DIRECTORY

Each stage is a copy of it; steps are read from the Dockerfile and carried out there by chroot. The server runs then as
the image's user, with its environment, in namespaces of its own. Needs root and 1 GB of disk.
"""

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import boto3

_SOURCE: Final = Path(__file__).parents[2]
_PATH: Final = "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"
_LIVES: Final = (
    'ip link set lo up && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec "$@"'
)
# What the installer needs to find its packages where this machine does; Docker has build arguments for it.
_OF_INSTALLER: Final = ("PIP_", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY")
_ACCOUNT: Final = "123456789012"


@dataclass
class Stage:
    """A stage of the build, and the image in the end.

    Attributes:
        root: The directory that it sees as `/`.
        directory: Where its steps run.
        environment: Of its steps, and of what the image starts.
        user: By number, `10001:10001`.
        health: The command of HEALTHCHECK.
        starts: ENTRYPOINT and CMD together.
    """

    root: Path
    directory: str = "/"
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    user: str = "0:0"
    health: list[str] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)

    def command(self, words: Sequence[str], extra: Mapping[str, str] | None = None) -> list[str]:
        """The words as a command of this machine that runs in the stage."""
        variables = [f"{name}={value}" for name, value in (self.environment | dict(extra or {})).items()]
        inside = ["env", "-i", *variables, "sh", "-c", f'cd {self.directory} && exec "$@"', "sh", *words]
        return ["chroot", f"--userspec={self.user}", str(self.root), *inside]


class Build:
    """The stages so far; a method for each step."""

    def __init__(self, base: Path, directory: Path) -> None:
        """Make stages in this directory, each from the base."""
        self._base = base
        self._directory = directory
        self._stages: list[Stage] = []
        self._names: dict[str, Stage] = {}

    def run(self, dockerfile: Path) -> Stage:
        """Carry out all steps; the last stage."""
        for step, rest in _steps(dockerfile):
            _say(step, rest)
            getattr(self, f"_{step.lower()}")(rest)
        return self._stages[-1]

    def _from(self, rest: str) -> None:
        stage = Stage(self._directory / f"stage-{len(self._stages)}")
        self._stages.append(stage)
        self._names[rest.rpartition(" AS ")[2]] = stage
        subprocess.run(["cp", "-a", str(self._base), str(stage.root)], check=True)

    def _workdir(self, rest: str) -> None:
        stage = self._stages[-1]
        stage.directory = rest
        (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _env(self, rest: str) -> None:
        environment = self._stages[-1].environment
        for name, _, value in (word.partition("=") for word in shlex.split(rest)):
            environment[name] = value.replace("$PATH", environment["PATH"])

    def _user(self, rest: str) -> None:
        self._stages[-1].user = rest

    def _copy(self, rest: str) -> None:
        *names, to = shlex.split(rest)
        source, stage = _SOURCE, self._stages[-1]
        if names[0].startswith("--from="):
            source = self._names[names.pop(0).removeprefix("--from=")].root
        target = stage.root / stage.directory.lstrip("/") / to
        if to.startswith("/"):
            target = stage.root / to.lstrip("/")
        for name in names:
            found = source / name.lstrip("/")
            if found.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(found, target, symlinks=True, dirs_exist_ok=True, ignore=ignored)
            else:
                shutil.copy2(found, target)

    def _run(self, rest: str) -> None:
        stage, variables = self._stages[-1], _of_installer()
        for file in ("/etc/resolv.conf", *(value for value in variables.values() if value.startswith("/"))):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                target = stage.root / file.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(Path(file).read_bytes())
        subprocess.run(stage.command(["sh", "-c", rest], variables), check=True)

    def _healthcheck(self, rest: str) -> None:
        self._stages[-1].health = json.loads(rest[rest.index("[") :])

    def _entrypoint(self, rest: str) -> None:
        self._stages[-1].starts += json.loads(rest)

    _cmd = _entrypoint

    def _volume(self, _: str) -> None:
        """A directory like any other here."""

    _expose = _volume


def _of_installer() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.upper().startswith(_OF_INSTALLER)}


def _steps(dockerfile: Path) -> Iterator[tuple[str, str]]:
    lines = [line for line in dockerfile.read_text().splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            step, _, rest = line.strip().partition(" ")
            yield step, rest.strip()


# ---- the image at work -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(image: Stage) -> Iterator[int]:
    """Start the image in namespaces of its own; the process by which others enter them."""
    (image.root / "etc/hosts").write_text("127.0.0.1 localhost\n")  # as every engine does
    alone = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGTERM", "sh", "-c", _LIVES]
    home = {"HOME": image.directory}
    command = [*alone, str(image.root), *image.command(image.starts, home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said.startswith("Redrive ready on "):
            raise RuntimeError(f"the image did not start: {said!r}")
        inner = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        try:
            yield inner
        finally:
            os.kill(inner, signal.SIGTERM)


def use(image: Stage, inner: int) -> None:
    """Ask it as its health check does, and as somebody who has a key."""
    enter = ["nsenter", f"--target={inner}", "--net", "--mount", "--pid"]
    _say("health check", subprocess.run([*enter, *image.command(image.health)], check=True).returncode)
    _say("user", Path(f"/proc/{inner}/status").read_text().partition("Uid:")[2].split()[0])
    keys = [*image.starts[:1], "keys", "create", "--account", _ACCOUNT]
    made = subprocess.run(
        [*enter, *image.command(keys)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    key = dict(line.split("=", 1) for line in made.split())
    walk = [sys.executable, "-m", "tests.deploy.image", "--walk"]
    subprocess.run([*enter[:3], *walk], check=True, env=os.environ | key, cwd=_SOURCE)
    told = subprocess.run(
        [*enter, *image.command([*image.starts[:1], "demo"])], check=True, stdout=subprocess.PIPE, text=True
    )
    _say("demo", next(line.strip("│ ") for line in told.stdout.splitlines() if "Nothing was lost" in line))


def walk() -> None:
    """Send, receive and delete by boto3, and look at the console."""
    url = "http://127.0.0.1:4566"
    sqs = boto3.client("sqs", endpoint_url=url, region_name="us-east-1")
    queue = sqs.create_queue(QueueName="orders")["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="sent")
    (message,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    _say("boto3", message["Body"])
    with urllib.request.urlopen(f"{url}/_redrive/console/", timeout=10) as page:
        _say("console", f"{page.status} {page.url.removeprefix(url)}")


def _say(what: str, came: object) -> None:
    print(f"{what:12} {came}", flush=True)  # noqa: T201 - a command speaks


def main() -> int:
    """Build, start, use, stop."""
    parser = argparse.ArgumentParser(prog="python -m tests.deploy.image", description=__doc__)
    parser.add_argument("--base", type=Path, help="the root of a Debian with Python 3.11")
    parser.add_argument("--walk", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.walk:
        walk()
        return 0
    with tempfile.TemporaryDirectory(prefix="redrive-image-", dir=asked.base.parent) as directory:
        Path(directory).chmod(0o755)
        image = Build(asked.base, Path(directory)).run(_SOURCE / "Dockerfile")
        with running(image) as inner:
            use(image, inner)
    return 0


if __name__ == "__main__":
    sys.exit(main())
