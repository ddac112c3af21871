"""`redrive demo`: the rental-car story end to end, from its template, on a simulated clock."""

import argparse
import importlib.util
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from rich.console import Console
from rich.panel import Panel
from rich.table import Column, Table

from redrive.cli import demo_stay, demo_story
from redrive.cli.demo_server import Billing, DemoServer, PostedOrder
from redrive.cli.demo_story import (
    BILLING_DLQ,
    BILLING_FANOUT_DLQ,
    DLQS,
    FULFILMENT_DLQ,
    FULFILMENT_FANOUT_DLQ,
    Story,
)

_RULE_MIN: Final = 3  # columns of line behind a title


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.description = (
        "The rental-car story on its own server, in a few seconds. The exit status is 1 if a step failed."
    )
    command.add_argument(
        "--stay", action="store_true", help="keep the server running, with dead letters to try the console on"
    )
    command.add_argument(
        "--orders",
        type=int,
        default=demo_stay.ORDERS,
        metavar="N",
        help=f"with --stay: number of orders (default: {demo_stay.ORDERS:,})",
    )
    command.add_argument(
        "--port", type=int, default=0, metavar="N", help="port to serve on (default: a free one)"
    )
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Tell the story; 0 if everything in it came true."""
    # The demo's server is a process of its own, which has to end with the demo.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if parsed.stay:
        orders = max(parsed.orders, demo_stay.BAD + 1)
        return demo_stay.stay(orders, lambda text: print(text, flush=True), parsed.port)
    if importlib.util.find_spec("awslambdaric") is None:
        print("redrive demo runs a function in Python: pip install awslambdaric", file=sys.stderr)
        return 1
    server = DemoServer.start("--clock", "simulated", "--allow-reset", "--functions", "on", port=parsed.port)
    billing = Billing(server.now)
    try:
        return Telling(Story(server, billing), Console()).tell()
    finally:
        billing.close()
        server.stop()


class Telling:
    """Tells the story on the screen, and checks each claim."""

    def __init__(self, story: Story, console: Console) -> None:
        self._story = story
        self._console = console
        self._failed_claims: list[str] = []

    def tell(self) -> int:
        """Tell all acts; returns the exit status."""
        acts: tuple[Callable[[], None], ...] = (
            self._build,
            self._all_well,
            self._billing_stumbles,
            self._billing_is_down,
            self._billing_is_shut,
            self._fulfilment_is_gone,
            self._fulfilment_chokes,
            self._inspect,
            self._redrive,
        )
        for number, act in enumerate(acts):
            self._announce(f"{number}. {act.__doc__}")
            act()
            self._console.print()
        return self._end()

    def _announce(self, title: str) -> None:
        if len(title) + _RULE_MIN > self._console.width:  # a rule would cut it short
            self._console.print(f"[bold]{title}", highlight=False)
        else:
            self._console.rule(f"[bold]{title}", align="left", style="blue")

    def _check(self, what: str, *, true: bool) -> None:
        self._console.print(f"  [green]✔[/] {what}" if true else f"  [bold red]✘ {what}[/]")
        if not true:
            self._failed_claims.append(what)

    # ---- the acts -----------------------------------------------------------------------------------------

    def _build(self) -> None:
        """One template: API, topic, queues, function, roles, key, logs and alarms."""
        self._print_picture()
        services = self._story.build()
        summary = ", ".join(f"{count} of {service}" for service, count in services.items())
        self._console.print(f"  {summary}", highlight=False)
        self._check(f"the stack has its {sum(services.values())} resources", true=bool(services))

    def _all_well(self) -> None:
        """All is well: orders reach both, a draft billing alone."""
        story = self._story
        answers = [
            story.order("order 1", "compact"),
            story.order("order 2", "van", "canceled"),
            story.order("order 3", "van", "draft"),
        ]
        self._check("the API answered 200 to all three", true=answers == [200] * 3)
        self._check("billing charged the confirmed one", true=_statuses(story, "order 1") == [[200]])
        self._check("fulfilment got all but the draft", true=story.fulfil() == ["order 1", "order 2"])

    def _billing_stumbles(self) -> None:
        """Billing answers 503 twice: the function is tried again, and succeeds."""
        story = self._story
        story.billing.answers = lambda number: 503 if number <= 2 else 200  # noqa: PLR2004 - the story's number
        story.order("order 4", "van", seconds=demo_story.RETRIES_END)
        visits = story.attempts("order 4")
        self._show_attempts(visits)
        self._check("billed at the third attempt", true=[each.status for each in visits] == [503, 503, 200])
        story.fulfil()

    def _billing_is_down(self) -> None:
        """Billing is down for good: the retries are spent, a dead letter."""
        story = self._story
        story.billing.answers = lambda _: 503
        story.order("order 5", "truck", seconds=demo_story.RETRIES_END)
        self._check("three attempts, all failed", true=_statuses(story, "order 5") == [[503] * 3])
        self._check(f"now in {BILLING_DLQ}", true=len(story.dead_letters(BILLING_DLQ)) == 1)
        story.billing.answers = lambda _: 200
        story.fulfil()

    def _billing_is_shut(self) -> None:
        """The topic may not invoke billing any more: a dead letter at once."""
        story = self._story
        story.lose_billing()
        story.order("order 6", "minibus")
        self._check("not one attempt at billing", true=not story.attempts("order 6"))
        self._check(f"now in {BILLING_FANOUT_DLQ}", true=len(story.dead_letters(BILLING_FANOUT_DLQ)) == 1)
        story.restore_billing()
        story.fulfil()

    def _fulfilment_is_gone(self) -> None:
        """The fulfilment queue is deleted: a dead letter at once."""
        story = self._story
        story.lose_fulfilment()
        story.order("order 7", "compact")
        letters = story.dead_letters(FULFILMENT_FANOUT_DLQ)
        self._check(f"now in {FULFILMENT_FANOUT_DLQ}", true=len(letters) == 1)
        story.restore_fulfilment()

    def _fulfilment_chokes(self) -> None:
        """Fulfilment cannot process an order: a dead letter of its queue."""
        story = self._story
        story.order("order 8", "truck")
        self._check("received three times", true=story.choke() == 3)  # noqa: PLR2004 - its maxReceiveCount
        self._check(f"now in {FULFILMENT_DLQ}", true=len(story.dead_letters(FULFILMENT_DLQ)) == 1)
        story.server.pass_time(300)

    def _inspect(self) -> None:
        """The messages in each dead-letter queue, the reasons, and who was told."""
        self._print_picture()
        columns = (Column(name, overflow="fold") for name in ("queue", "order", "why"))
        table = Table(*columns, header_style="bold")
        for queue, letter in self._letters():
            for order, error in self._story.dead_orders(queue):
                table.add_row(queue, order, error or letter["reason"] or "consumer gave up")
        self._console.print(table)
        for failure in self._story.failures():
            error_code = json.loads(failure["providerResponse"])["ErrorCode"]
            self._console.print(f"  delivery log: {failure['statusCode']} {error_code}", highlight=False)
        self._check("four dead letters", true=len(list(self._letters())) == 4)  # noqa: PLR2004 - orders 5 to 8
        self._check("each of the four alarms has fired", true=self._story.alarms_rung() == set(DLQS))

    def _redrive(self) -> None:
        """Everything is repaired: the dead letters go back."""
        story = self._story
        for queue in (FULFILMENT_DLQ, FULFILMENT_FANOUT_DLQ, BILLING_FANOUT_DLQ):
            self._console.print(f"  {queue}: {story.redrive(queue)} on their way back")
        self._console.print(f"  {BILLING_DLQ}: {story.invoke_again()} invoked again")
        statuses = _statuses(story, "order 5", "order 6")
        self._check("billing has orders 5 and 6", true=[each[-1:] for each in statuses] == [[200], [200]])
        self._check("fulfilment has orders 7 and 8", true=story.fulfil() == ["order 7", "order 8"])
        self._check("the dead-letter queues are empty", true=not list(self._letters()))

    # ---- what is shown --------------------------------------------------------------------------------------

    def _print_picture(self) -> None:
        """The architecture, with what lies in its dead-letter queues."""
        counts = Counter(queue for queue, _ in self._letters()) if self._story.is_built else Counter[str]()
        for line in _architecture().splitlines():
            dead = counts[line.split()[-1]] if line.split() else 0
            text = f"[bold red]{line} {'●' * dead} {dead}[/]" if dead else line
            self._console.print(text, highlight=False, no_wrap=True, overflow="ignore", crop=False)

    def _letters(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for queue in DLQS:
            for letter in self._story.dead_letters(queue):
                yield queue, letter

    def _show_attempts(self, visits: list[PostedOrder]) -> None:
        table = Table("attempt", "after", "waited", "answer", header_style="bold")
        for number, visit in enumerate(visits):
            wait_seconds = visit.at - visits[number - 1].at if number else 0
            colour = "green" if visit.status == 200 else "red"  # noqa: PLR2004 - HTTP's success
            table.add_row(
                str(number + 1),
                f"{visit.at - visits[0].at:.1f} s",
                f"{wait_seconds:.1f} s",
                f"[{colour}]{visit.status}[/]",
            )
        self._console.print(table)

    def _end(self) -> int:
        if self._failed_claims:
            self._console.print(Panel("\n".join(self._failed_claims), title="missing", style="red"))
            return 1
        self._console.print(Panel("Nothing was lost.", style="green", expand=False))
        return 0


def _architecture() -> str:
    """The picture that the story's own page begins with."""
    return "    " + (demo_story.__doc__ or "").partition("\n\n    ")[2]


def _statuses(story: Story, *orders: str) -> list[list[int]]:
    return [[visit.status for visit in story.attempts(order)] for order in orders]
