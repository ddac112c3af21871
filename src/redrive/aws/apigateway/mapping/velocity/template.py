"""Templates: read once, and rendered within a budget."""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from redrive.aws.apigateway.mapping.velocity.budget import Budget, TemplateFailed, TooCostly
from redrive.aws.apigateway.mapping.velocity.directives import Broken, Stopped
from redrive.aws.apigateway.mapping.velocity.expressions import Node, Scope
from redrive.aws.apigateway.mapping.velocity.reading import Reading
from redrive.aws.apigateway.mapping.velocity.values import Value

CHARS_MAX: Final = 300 * 1024
"""The largest template, as Amazon's quotas have it."""
#: Of a rendering on the loop, some 2 ms; one that wants more begins anew beside it.
STEPS_AT_ONCE: Final = 4_000
#: Of a template that is read on the loop; 300 KiB take 0.3 s, once.
_CHARS_AT_ONCE: Final = 8 * 1024
#: Of a rendering beside the loop, some 0.2 s of a thread that the loop shares the processor with.
STEPS_MAX: Final = 400_000

Variables = Callable[[], dict[str, Value]]


@lru_cache(maxsize=1024)
def _read(text: str) -> Sequence[Node] | str:
    """The nodes of a template, or why it cannot be read: to find that out anew would cost each request the same."""
    if len(text) > CHARS_MAX:
        return f"A template has at most {CHARS_MAX} characters"
    try:
        return Reading(text).template()
    except TemplateFailed as failure:
        return str(failure)


def read(text: str) -> Sequence[Node]:
    """The nodes of a template.

    Raises:
        TemplateFailed: It cannot be read, or is too long.
    """
    nodes = _read(text)
    if isinstance(nodes, str):
        raise TemplateFailed(nodes)
    return nodes


def render_within(text: str, variables: dict[str, Value], steps: int) -> str:
    """The text of a template.

    Args:
        text: Of the template.
        variables: Its variables, which it may change.
        steps: How many it may take.

    Raises:
        TemplateFailed: It cannot be read or carried out, or takes more steps.
    """
    nodes = read(text)
    scope = Scope(Budget(steps), dict(variables))
    try:
        for node in nodes:
            node.write(scope)
    except (Stopped, Broken):
        pass
    except RecursionError:
        raise TemplateFailed("The template is nested too deeply") from None
    return "".join(scope.out)


class Renderer:
    """Renders templates; those that take long beside the event loop, one at a time."""

    def __init__(self) -> None:
        """Begin with nothing under way."""
        self._costly = asyncio.Semaphore(1)

    async def render(self, text: str, variables: Variables) -> tuple[str, dict[str, Value]]:
        """The text of a template, and its variables as it leaves them.

        Args:
            text: Of the template.
            variables: Makes its variables; called again for one that begins anew.

        Raises:
            TemplateFailed: It cannot be read or carried out, or takes too long.
        """
        if len(text) > _CHARS_AT_ONCE:
            async with self._costly:
                await asyncio.to_thread(_read, text)
        names = variables()
        try:
            return render_within(text, names, STEPS_AT_ONCE), names
        except TooCostly:
            names = variables()
        async with self._costly:
            return await asyncio.to_thread(render_within, text, names, STEPS_MAX), names
