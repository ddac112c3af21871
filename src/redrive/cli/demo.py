"""`redrive demo`: the rental-car story end to end, on real HTTP endpoints and a simulated clock."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any, Final

from rich.console import Console
from rich.panel import Panel
from rich.table import Column, Table

from redrive.cli import demo_stay, demo_story
from redrive.cli.demo_billing import Billing, Visit
from redrive.cli.demo_server import DemoServer
from redrive.cli.demo_story import BILLING_FANOUT_DLQ, DLQS, FULFILMENT_DLQ, FULFILMENT_FANOUT_DLQ, Story

_RULE_MIN: Final = 3  # columns of line behind a title


def register(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    command = commands.add_parser(
        "demo",
        help="watch orders published, failed, retried, dead-lettered, redriven and delivered",
        description="The rental-car story on a server of its own, in a few seconds; exits 1 if anything is missing.",
    )
    command.add_argument(
        "--stay", action="store_true", help="let orders die on a server that stays, for the web console"
    )
    command.add_argument(
        "--orders",
        type=int,
        default=demo_stay.ORDERS,
        metavar="N",
        help=f"with --stay: how many (default: {demo_stay.ORDERS:,})",
    )
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Tell the story; 0 if everything in it came true."""
    if parsed.stay:
        return demo_stay.stay(max(parsed.orders, demo_stay.BAD + 1), lambda text: print(text, flush=True))
    server = DemoServer.start("--clock", "simulated", "--allow-reset")
    billing = Billing(server.now)
    try:
        return Telling(Story(server, billing), Console()).tell()
    finally:
        billing.close()
        server.stop()


class Telling:
    """The story on the screen, each claim checked as it is made."""

    def __init__(self, story: Story, console: Console) -> None:
        """Tell this story there."""
        self._story = story
        self._console = console
        self._missing: list[str] = []

    def tell(self) -> int:
        """Tell all acts; the exit status."""
        acts: tuple[Callable[[], None], ...] = (
            self._build,
            self._all_well,
            self._billing_stumbles,
            self._billing_is_down,
            self._billing_refuses,
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
            self._missing.append(what)

    # ---- the acts -----------------------------------------------------------------------------------------

    def _build(self) -> None:
        """Rental-Orders, its two subscribers and their dead-letter queues."""
        self._console.print(_architecture(), highlight=False, no_wrap=True, overflow="ignore", crop=False)
        self._story.build()
        self._check("billing confirmed its subscription over HTTP", true=self._story.confirmed())

    def _all_well(self) -> None:
        """All is well: a confirmed order reaches both, a draft is filtered."""
        story = self._story
        story.order("order 1: a compact car")
        story.order("order 2: only a draft", status="draft")
        self._check("billing has both", true=_statuses(story, "order 1", "order 2") == [[200], [200]])
        self._check(
            "fulfilment got the confirmed one alone", true=story.fulfil() == ["order 1: a compact car"]
        )

    def _billing_stumbles(self) -> None:
        """Billing answers 503 four times: retried, then delivered."""
        story = self._story
        story.billing.answers = lambda number: 503 if number <= 4 else 200  # noqa: PLR2004 - the story's number
        story.order("order 3: a van", seconds=demo_story.HOUR)
        visits = story.attempts("order 3: a van")
        self._show_attempts(visits)
        self._check(
            "delivered at the fifth attempt", true=[each.status for each in visits] == [503] * 4 + [200]
        )
        story.fulfil()

    def _billing_is_down(self) -> None:
        """Billing is down for good: the retries are spent, a dead letter."""
        story = self._story
        story.billing.answers = lambda _: 503
        story.order("order 4: a truck", seconds=demo_story.HOUR)
        visits = story.attempts("order 4: a truck")
        self._show_attempts(visits)
        self._check(f"{demo_story.ATTEMPTS} attempts, all failed", true=len(visits) == demo_story.ATTEMPTS)
        self._check(f"now in {BILLING_FANOUT_DLQ}", true=len(story.dead_letters(BILLING_FANOUT_DLQ)) == 1)
        story.fulfil()

    def _billing_refuses(self) -> None:
        """Billing answers 404, a client error: a dead letter at once."""
        story = self._story
        story.billing.answers = lambda _: 404
        story.order("order 5: a bicycle", seconds=demo_story.HOUR)
        self._check("one attempt", true=len(story.attempts("order 5: a bicycle")) == 1)
        self._check(f"now in {BILLING_FANOUT_DLQ}", true=len(story.dead_letters(BILLING_FANOUT_DLQ)) == 2)  # noqa: PLR2004 - two so far
        story.billing.answers = lambda _: 200
        story.fulfil()

    def _fulfilment_is_gone(self) -> None:
        """Somebody deletes the fulfilment queue: a dead letter at once."""
        story = self._story
        story.lose_fulfilment()
        story.order("order 6: a minibus")
        self._check(
            f"now in {FULFILMENT_FANOUT_DLQ}", true=len(story.dead_letters(FULFILMENT_FANOUT_DLQ)) == 1
        )
        story.server.pass_time(demo_story.RECREATE_AFTER)
        story.create_fulfilment()

    def _fulfilment_chokes(self) -> None:
        """Fulfilment cannot process an order: a dead letter of its queue."""
        story = self._story
        story.order("order 7: a unicycle")
        self._check("received three times", true=story.choke() == 3)  # noqa: PLR2004 - its maxReceiveCount
        self._check(f"now in {FULFILMENT_DLQ}", true=len(story.dead_letters(FULFILMENT_DLQ)) == 1)

    def _inspect(self) -> None:
        """The messages in each dead-letter queue, and the reasons."""
        whole = (Column(name, overflow="fold") for name in ("queue", "order", "tries", "why", "status"))
        table = Table(*whole, header_style="bold")
        for queue, letter in self._letters():
            status = str(letter["history"][-1]["status"]) if letter["history"] else "-"
            why = letter["reason"] or "consumer gave up"
            table.add_row(queue, letter["body"].partition(":")[0], str(letter["attempts"]), why, status)
        self._console.print(table)
        self._check("four dead letters", true=len(list(self._letters())) == 4)  # noqa: PLR2004 - orders 4 to 7

    def _redrive(self) -> None:
        """Everything is repaired: the dead letters go back."""
        story = self._story
        for queue in DLQS:
            moved = story.redrive(queue)
            self._console.print(f"  {queue}: {moved} on their way back")
        billed = _statuses(story, "order 4", "order 5")
        self._check("billing has orders 4 and 5", true=[each[-1] for each in billed] == [200, 200])
        orders = sorted(story.fulfil())
        self._check(
            "fulfilment has orders 6 and 7", true=orders == ["order 6: a minibus", "order 7: a unicycle"]
        )
        self._check("the dead-letter queues are empty", true=not list(self._letters()))

    # ---- what is shown --------------------------------------------------------------------------------------

    def _letters(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for queue in DLQS:
            for letter in self._story.dead_letters(queue):
                yield queue, letter

    def _show_attempts(self, visits: list[Visit]) -> None:
        table = Table("attempt", "after", "waited", "answer", header_style="bold")
        for number, visit in enumerate(visits):
            waited = visit.at - visits[number - 1].at if number else 0
            colour = "green" if visit.status == 200 else "red"  # noqa: PLR2004 - HTTP's success
            table.add_row(
                str(number + 1),
                f"{visit.at - visits[0].at:.1f} s",
                f"{waited:.1f} s",
                f"[{colour}]{visit.status}[/]",
            )
        self._console.print(table)

    def _end(self) -> int:
        if self._missing:
            self._console.print(Panel("\n".join(self._missing), title="missing", style="red"))
            return 1
        self._console.print(Panel("Nothing was lost.", style="green", expand=False))
        return 0


def _architecture() -> str:
    """The picture that the story's own page begins with."""
    return "    " + (demo_story.__doc__ or "").partition("\n\n    ")[2]


def _statuses(story: Story, *beginnings: str) -> list[list[int]]:
    return [
        [visit.status for visit in story.billing.visits if visit.order.startswith(beginning)]
        for beginning in beginnings
    ]
