import asyncio
import os
from pathlib import Path

import pytest

from redrive.server.localstack import InitScripts
from redrive.settings import SettingsInvalid

_URL = "http://127.0.0.1:1"


def _write(path: Path, text: str, mode: int = 0o755) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def test_scripts_run_in_order_and_one_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    ready = tmp_path / "ready.d"
    _write(ready / "below" / "c.sh", '#!/bin/sh\necho "c $AWS_PROFILE" >> "$OUT"\n')
    _write(ready / "a.sh", '#!/bin/sh\necho "a $AWS_ENDPOINT_URL" >> "$OUT"\nexit 3\n')
    _write(
        ready / "b.py", "import os\nprint('b', os.environ['AWS_REGION'], file=open(os.environ['OUT'], 'a'))\n"
    )
    _write(ready / "plain.sh", "#!/bin/sh\n", 0o644)
    _write(ready / "notes.txt", "not a script")
    scripts = InitScripts(str(tmp_path))
    assert scripts.stages()["completed"] == {"BOOT": True, "START": True, "READY": False, "SHUTDOWN": False}
    assert {script["state"] for script in scripts.stages()["scripts"]} == {"UNKNOWN"}
    asyncio.run(scripts.run(_URL, "eu-west-1"))
    assert (tmp_path / "out").read_text() == f"a {_URL}\nb eu-west-1\nc \n"
    assert scripts.stage("READY") == {
        "completed": True,
        "scripts": [
            {"stage": "READY", "name": "a.sh", "state": "ERROR"},
            {"stage": "READY", "name": "b.py", "state": "SUCCESSFUL"},
            {"stage": "READY", "name": "plain.sh", "state": "ERROR"},
            {"stage": "READY", "name": "c.sh", "state": "SUCCESSFUL"},
        ],
    }
    assert scripts.stage("BOOT") == {"completed": True, "scripts": []}


def test_a_script_ends_with_the_server_and_so_does_what_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    _write(tmp_path / "ready.d" / "a.sh", f"#!/bin/sh\nexec > {pipe}\necho begun\nsleep 600 &\nwait\n")

    async def story() -> bytes:
        task = asyncio.create_task(InitScripts(str(tmp_path)).run(_URL, "us-east-1"))
        with await asyncio.to_thread(pipe.open, "rb") as output:
            assert await asyncio.to_thread(output.readline) == b"begun\n"
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return await asyncio.to_thread(output.read)  # its end: nobody holds the pipe any more

    assert asyncio.run(story()) == b""


def test_a_folder_without_the_stage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"init_scripts .* has no folder ready\.d"):
        InitScripts(str(tmp_path))
    assert InitScripts("").stages()["scripts"] == []
