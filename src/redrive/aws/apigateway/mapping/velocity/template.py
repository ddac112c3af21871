"""Templates: read once, and rendered within a budget."""

from collections.abc import Callable, Sequence
from typing import Final

from redrive.aws.apigateway.mapping.velocity.expressions import (
    LoopBreak,
    TemplateNode,
    TemplateScope,
    TemplateStop,
)
from redrive.aws.apigateway.mapping.velocity.reading import TemplateReader
from redrive.aws.apigateway.mapping.velocity.values import TemplateFailed, Value
from redrive.aws.kit.offloading import offload, within_budget
from redrive.model.budget import Budget, OverBudgetError
from redrive.model.memo import remembered

CHARS_MAX: Final = 300 * 1024
"""The largest template, as Amazon's quotas have it."""
#: A longer template is read beside the event loop; 300 KiB take 0.3 s, once.
_CHARS_AT_ONCE: Final = 8 * 1024

Variables = Callable[[], dict[str, Value]]


@remembered(1024, 4 * 1024, longer_max=16)
def _read(text: str) -> Sequence[TemplateNode] | str:
    """The nodes of a template, or why it cannot be read, which is cached as well: each request would pay for it again."""
    if len(text) > CHARS_MAX:
        return f"A template has at most {CHARS_MAX} characters"
    try:
        return TemplateReader(text).template()
    except TemplateFailed as failure:
        return str(failure)


def read(text: str) -> Sequence[TemplateNode]:
    """The nodes of a template; raises TemplateFailed if it cannot be read, or is too long."""
    nodes = _read(text)
    if isinstance(nodes, str):
        raise TemplateFailed(nodes)
    return nodes


def render_within(text: str, variables: dict[str, Value], budget: Budget) -> str:
    """The text of a template, rendered within a budget.

    Raises:
        TemplateFailed: It cannot be read or rendered.
        OverBudgetError: It exceeds the budget.
    """
    nodes = read(text)
    scope = TemplateScope(budget, dict(variables))
    try:
        for node in nodes:
            node.write(scope)
    except (TemplateStop, LoopBreak):
        pass
    except RecursionError:
        raise TemplateFailed("The template is nested too deeply") from None
    return "".join(scope.out)


async def render(account: str, text: str, variables: Variables) -> tuple[str, dict[str, Value]]:
    """The text of an account's template, and its variables after the rendering.

    - `variables`: creates its variables; called again if the template takes long and begins anew beside the event loop.

    Raises:
        TemplateFailed: It cannot be read or rendered, or takes too long.
        AwsError: See `offload`.
    """
    if len(text) > _CHARS_AT_ONCE:
        await offload(account, lambda: _read(text))

    def work(budget: Budget) -> tuple[str, dict[str, Value]]:
        names = variables()
        return render_within(text, names, budget), names

    try:
        return await within_budget(account, work)
    except OverBudgetError:
        raise TemplateFailed("The template takes too many steps") from None
