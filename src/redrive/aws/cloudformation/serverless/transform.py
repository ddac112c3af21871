"""The transform `AWS::Serverless-2016-10-31`, carried out by a process that ends with it.

Importing the translator takes 1.5 s of a processor and 50 MB: too much for a process that has messages to deliver.
"""

import asyncio
import importlib.util
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from typing import Any, Final

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.sections import transforms_of

SERVERLESS: Final = "AWS::Serverless-2016-10-31"
TYPES: Final = "AWS::Serverless::"
"""What the types of resources begin with that the transform replaces."""
_LIBRARY: Final = "samtranslator"
_PROCESS: Final = "redrive.aws.cloudformation.serverless.process"
_SECONDS_MAX: Final = 60
_PASSED_ON: Final = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "HOME")


def is_serverless(source: Mapping[str, Any]) -> bool:
    """True if a template asks for the transform."""
    return SERVERLESS in transforms_of(source)


class Translator:
    """Translates templates one after the other: many at once take one processor, and not all."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def expanded(
        self, source: Mapping[str, Any], parameters: Mapping[str, str], region: str
    ) -> dict[str, Any]:
        """Returns a template whose serverless resources are replaced by those that they stand for.

        Args:
            source: As it was read, its loops written out.
            parameters: The texts of its parameters, by name.
            region: Where the stack is.

        Raises:
            TemplateInvalid: The translator refuses it, is not installed, or takes longer than a minute.
        """
        if importlib.util.find_spec(_LIBRARY) is None:
            raise _failed("this server lacks the package aws-sam-translator: pip install aws-sam-translator")
        task = {"template": dict(source), "parameters": dict(parameters)}
        async with self._turn:
            answer = json.loads(await _answer(json.dumps(task).encode(), region))
        if "refusal" in answer:
            raise _failed(answer["refusal"])
        return {**answer["template"], "Transform": source["Transform"]}


async def _answer(task: bytes, region: str) -> bytes:
    variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _PROCESS),
        env=variables | {"AWS_DEFAULT_REGION": region},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        out, errors = await asyncio.wait_for(process.communicate(task), _SECONDS_MAX)
    except TimeoutError:
        raise _failed(f"the translator took longer than {_SECONDS_MAX} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = errors.decode(errors="replace").rstrip().rpartition("\n")[2]
        raise _failed(f"the translator gave up: {last or process.returncode}")
    return out


def _failed(why: str) -> TemplateInvalid:
    return TemplateInvalid(f"Transform {SERVERLESS} failed with: {why}")
