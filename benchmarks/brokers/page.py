"""The page of the documentation that the results are written to."""

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from benchmarks.bench import Scale
from benchmarks.brokers.servers import Broker

if TYPE_CHECKING:
    from benchmarks.brokers.brokers import Loss, Turn, Turns

_BEGIN: Final = """\
# Beside other brokers

What Redrive reaches beside the brokers that people would pick instead, under one load on one machine, each answer on
disk everywhere. The page is written by

    python -m benchmarks brokers

{machine}.

The load program ([benchmarks/brokers/load](../../benchmarks/brokers/load), in Go) has {callers} callers with one call
under way each and bodies of 200 bytes. Brokers take turns, {rounds} turns of {seconds} s for each load; the median
counts, and the slowest and the fastest turn stand beside it. Load and broker share the machine's processors. A *life*
is a message sent, received and deleted. *Ten a call* is each broker's own form: SendMessageBatch, ReceiveMessage of
ten and DeleteMessageBatch; RabbitMQ's publishes confirmed together, a prefetch of ten and one ack for all; NATS's
asynchronous publishes, a fetch of ten and the last ack answered; beanstalkd's commands one behind the other; one
statement for ten rows in PostgreSQL. Processor time and KiB written are the broker's own processes' for one message.

Redrive speaks HTTP and JSON; the others speak protocols of their own, which cost less to read.
"""


def page(
    machine: str,
    scale: Scale,
    brokers: Sequence[Broker],
    missing: Sequence[str],
    turns: "Turns",
    losses: "Mapping[str, Loss]",
) -> str:
    """The whole page."""
    callers = " or ".join(map(str, scale.connections))
    head = _BEGIN.format(machine=machine, callers=callers, rounds=scale.rounds, seconds=scale.seconds)
    loads = list(dict.fromkeys((load, number) for load, number, _ in turns))
    tables = [_table(load, number, brokers, turns) for load, number in loads]
    parts = [head, _settings(brokers, missing), "## Rates", *tables, _losses(losses)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _settings(brokers: Sequence[Broker], missing: Sequence[str]) -> str:
    rows = "\n".join(
        f"| {broker.name} | {broker.version or 'not known'} | {broker.durability} |" for broker in brokers
    )
    absent = f"\n\nNot measured: {'; '.join(missing)}." if missing else ""
    return f"## Brokers and their durability settings\n\n| broker | version | settings |\n|---|---|---|\n{rows}{absent}"


def _table(load: str, callers: int, brokers: Sequence[Broker], turns: "Turns") -> str:
    rows = "\n".join(_row(broker.name, turns[load, callers, broker.name]) for broker in brokers)
    columns = "| | messages a second | slowest, fastest | p50 ms | p99 ms | processor us | KiB written |"
    return f"### {load.capitalize()}, {callers} callers\n\n{columns}\n|---|---|---|---|---|---|---|\n{rows}"


def _row(name: str, runs: "Sequence[Turn]") -> str:
    rates = [run.per_second for run in runs]
    cells = (
        f"**{statistics.median(rates):,.0f}**",
        f"{min(rates):,.0f}, {max(rates):,.0f}",
        f"{statistics.median(run.p50_ms for run in runs):.1f}",
        f"{statistics.median(run.p99_ms for run in runs):.1f}",
        _median_of([run.cpu_us for run in runs], ".0f"),
        _median_of([run.written_kib for run in runs], ".1f"),
    )
    return f"| {name} | {' | '.join(cells)} |"


def _median_of(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return format(statistics.median(known), form) if known else ""


def _losses(losses: "Mapping[str, Loss]") -> str:
    rows = "\n".join(f"| {name} | {loss.acknowledged:,} | {loss.lost:,} |" for name, loss in losses.items())
    return (
        "## What `kill -9` loses\n\n"
        "All processes of each broker were killed (`kill -9`) two seconds into a load of sends by 32 callers. The broker"
        " was started again and its queue emptied. What a killed process wrote stays with the kernel, so this finds"
        " messages that were acknowledged before they were written. A power cut, which would also find messages that were"
        " acknowledged before they were on disk, is not tried here.\n\n"
        f"| broker | acknowledged | lost |\n|---|---|---|\n{rows}"
    )
